"""How many workers an elastic job may have, and how it replaces lost ones."""

import enum

import attrs


class AttachMode(enum.StrEnum):
    """How the launcher reaches its workers."""

    SSH = "ssh"
    KUBEXEC = "kubexec"


@attrs.frozen
class Elasticity:
    """How many workers a job may have, and how it replaces lost ones."""

    attach: AttachMode = AttachMode.SSH
    # Bounds of the number of workers.
    min_replicas: int = 1
    max_replicas: int | None = None
    # True if ended workers are replaced; :attr:`ReplicaSpec.retry_policy` limits it by exit code.
    # ``replace_succeeded`` also replaces workers that exit 0.
    replace_failed: bool = False
    replace_succeeded: bool = False
    # Limit of consecutive replacements per worker without a long run in between; None: no limit.
    replacement_limit: int | None = None
    # How often the whole job is restarted when its launcher fails with a retryable error.
    job_restart_limit: int = 0
    # True if the deletion of the launcher by a user ends the job.
    requires_launcher: bool = False

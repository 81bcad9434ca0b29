"""Jobs whose workers come and go while they run: what is asked for, and how far it has come.

Workers are known by their indexes; the names of their pods follow from the job's.
"""

import datetime
import enum
from typing import Final, Self

import attrs

from dlctl.api.conditions import Condition
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.undecoded_object import UndecodedObject

GROUP = "kai.alibabacloud.com"
SCALE_INS = Resource(GROUP, "v1alpha1", "scaleins", "ScaleIn")
SCALE_OUTS = Resource(GROUP, "v1alpha1", "scaleouts", "ScaleOut")
# The types of replicas of jobs that scale: one dials, the others are dialled.
LAUNCHER: Final = "launcher"
WORKER: Final = "worker"


class AttachMode(enum.StrEnum):
    """How the launcher reaches its workers."""

    SSH = "ssh"
    KUBEXEC = "kubexec"


@attrs.frozen
class Elasticity:
    """How many workers a job may have, and what becomes of those that it loses."""

    attach: AttachMode = AttachMode.SSH
    # Bounds of the number of workers.
    min_replicas: int = 1
    max_replicas: int | None = None
    # Whether workers that end are replaced by others, which :attr:`ReplicaSpec.retry_policy` limits
    # by exit code; ``replaces_done`` has also those replaced that end well.
    replace_failed: bool = False
    replace_succeeded: bool = False
    # So many replacements in a row without a long run between them, for each worker; None: any.
    replacement_limit: int | None = None
    # So often the whole job is run again when its launcher fails in a way that may pass.
    job_restart_limit: int = 0
    # Whether a launcher that somebody has deleted is the job's end.
    requires_launcher: bool = False


class ScalerPhase(enum.StrEnum):
    """Where a ScaleIn or ScaleOut is; the words are et-operator's."""

    NEW = ""
    SCALING = "Scaling"
    SUCCEEDED = "ScaleSucceeded"
    FAILED = "ScaleFailed"

    @property
    def finished(self) -> bool:
        return self in (ScalerPhase.SUCCEEDED, ScalerPhase.FAILED)


@attrs.frozen
class Script:
    """A program in the launcher that takes part in a change; it is told the workers."""

    path: str
    timeout_s: int = 60
    # Names and values, in order.
    env: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class ScalerStatus:
    """What is written down of one ScaleIn or ScaleOut."""

    phase: ScalerPhase = ScalerPhase.NEW
    conditions: tuple[Condition, ...] = ()
    # The names of the pods that it takes away or adds, once they are chosen.
    pods: tuple[str, ...] = ()


@attrs.frozen
class Scaler:
    """One ScaleIn or ScaleOut, read from its object."""

    resource: Resource
    key: ObjectKey
    uid: UID
    created: datetime.datetime
    # The job it is for, in its namespace.
    job: str
    # How many workers to add or take away; None if ``pods`` are named instead, or neither.
    count: int | None = None
    # ScaleIn: those to take away, by the names of their pods; None if none are named.
    pods: tuple[str, ...] | None = None
    # ScaleOut: so many of the added are enough when time is up; all of them, if None.
    min_count: int | None = None
    # ScaleOut: seconds until all that are added must be there; None for the controller's setting.
    timeout_s: int | None = None
    script: Script | None = None
    # So often what has failed is tried again.
    backoff_limit: int = 0
    # What is wrong with its spec: it fails with this, and nothing is done.
    invalid_reason: str = ""
    status: ScalerStatus = ScalerStatus()

    @property
    def is_scale_out(self) -> bool:
        return self.resource.kind == SCALE_OUTS.kind

    @property
    def succeeded(self) -> bool:
        return self.status.phase is ScalerPhase.SUCCEEDED

    @property
    def full_name(self) -> str:
        """Return what a job's status calls it: ``ScaleIn:namespace/name``."""
        return f"{self.resource.kind}:{self.key}"


class ScalerObject(UndecodedObject, frozen=True, gc=False):
    """A ScaleIn or ScaleOut as it is on the server, its spec and status still undecoded."""

    kind: str = ""


@attrs.frozen
class ScaleOperation:
    """One change of the workers that is under way; written down before anything is done for it.

    ``scaler`` and ``uid`` are those of the object that asks for it. What has none is the job's own
    doing: it follows its spec, or flees from a node.
    """

    is_scale_out: bool
    # The workers that come or go.
    workers: tuple[int, ...]
    since: datetime.datetime
    scaler: str = ""
    uid: str = ""
    # Pods that were lost before they could be used.
    failures: int = 0
    # Coming: they have all answered, and a script may be told of them. Going: it is known which
    # of them the launcher used.
    ready: bool = False
    # Coming: in the host file since then. Going: its script has been run.
    done: bool = False
    # Going: those that the launcher did not use while it used others. Their processes have died,
    # so it avoids their names from then on.
    unused: tuple[int, ...] = ()


@attrs.frozen
class Membership:
    """The workers that a job is to have, and the memory of how they came to be these."""

    # Those it is to have, dead ones among them that nobody replaces.
    members: tuple[int, ...] = ()
    # Those in the host file.
    hosts: tuple[int, ...] = ()
    # Those that have ended; their names are of no use any more, since launchers avoid them.
    retired: frozenset[int] = frozenset()
    # The number in the spec that the members follow already.
    observed_replicas: int = 0
    scaling: ScaleOperation | None = None
    # Those that leave nodes which are about to go; their successors are members already.
    evacuating: ScaleOperation | None = None
    # Grows with each change of the hosts: a late delivery of older ones is recognized by it. Zero
    # if it is not known.
    generation: int = 0

    @property
    def leaving(self) -> frozenset[int]:
        """Return those that are being taken away."""
        changes = (change for change in (self.scaling, self.evacuating) if change)
        return frozenset(i for change in changes if not change.is_scale_out for i in change.workers)

    @property
    def present(self) -> tuple[int, ...]:
        """Return all that there are pods of: members, and those that come or go."""
        passing = self.scaling.workers if self.scaling else ()
        return tuple(sorted({*self.members, *passing, *self.leaving}))

    def reset(self) -> Self:
        """Return it for a launcher that is yet to come: it knows nothing of who has ended."""
        return attrs.evolve(self, hosts=(), retired=frozenset())

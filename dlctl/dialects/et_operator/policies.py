"""The policies of a TrainingJob: restarts, clean-up, deadlines and suspension.

Differences from et-operator are noted where the field is read.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dlctl.api.job import LAUNCHER, WORKER
from dlctl.api.policies.elasticity import AttachMode, Elasticity
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.dialects import run_policy_field
from dlctl.dialects.field_reader import MAX_INT32, MAX_REPLICAS, FieldReader, parse_enum
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.errors import InvalidJobError

SUSPENDED_ANNOTATION: Final = "job-supervisor.kube-ai.io/job-suspended"
DEFAULT_BACKOFF_LIMIT: Final = 6
# In the spec itself, like a TrainingJob's other policies, or in ``runPolicy`` like Kubeflow's.
_SPEC_FIELDS: Final = (
    "activeDeadlineSeconds", "schedulingPolicy", "suspend", "ttlSecondsAfterFinished",
)  # fmt: skip
_TYPES: Final = {LAUNCHER: LAUNCHER, WORKER: WORKER}
_JOB_RESTART_POLICIES: Final = (RestartPolicy.NEVER, RestartPolicy.ON_FAILURE)


def read_elasticity(
    spec: FieldReader, launcher: FieldReader, worker: FieldReader, replicas: int
) -> Elasticity:
    """Read the bounds of the number of workers, and the restart policies.

    :raises InvalidJobError: naming the field and the fix.
    """
    minimum, maximum = _worker_bounds(worker, replicas)
    policy = replica_restart_policy(worker)
    mode = spec.string("launcherAttachMode")
    attach = parse_enum(
        mode, AttachMode, field=spec.path_of("launcherAttachMode"), default=AttachMode.SSH
    )
    restarts_job = job_restart_policy(spec) is RestartPolicy.ON_FAILURE and not _restarts_launcher(
        launcher
    )
    limit = backoff_limit(spec)
    return Elasticity(
        attach=attach,
        min_replicas=minimum,
        max_replicas=maximum,
        replace_failed=policy is not RestartPolicy.NEVER,
        replace_succeeded=policy is RestartPolicy.ALWAYS,
        replacement_limit=worker.optional_integer("backoffLimit", maximum=MAX_INT32),
        job_restart_limit=limit if restarts_job else 0,
        # Recreated by default, although et-operator never did.
        requires_launcher=launcher.string("restartPolicy").lower() == RestartPolicy.NEVER.lower(),
    )


def launcher_retry_policy(spec: FieldReader, launcher: FieldReader) -> RetryPolicy:
    """Read after which exit codes of the launcher it or the whole job is restarted."""
    restarts_job = job_restart_policy(spec) is RestartPolicy.ON_FAILURE and backoff_limit(spec) > 0
    restarts = _restarts_launcher(launcher) or restarts_job
    return RetryPolicy.TABLE_AND_SIGNALS if restarts else RetryPolicy.NONE


def worker_retry_policy(worker: FieldReader) -> RetryPolicy:
    policy = replica_restart_policy(worker)
    if policy is RestartPolicy.EXIT_CODE:
        return RetryPolicy.SIGNALS
    return RetryPolicy.NONE if policy is RestartPolicy.NEVER else RetryPolicy.ALL


def read_run_policy(
    spec: FieldReader, launcher: FieldReader, annotations: Mapping[str, str]
) -> RunPolicy:
    """Read the run policy, including the annotation that suspends a job."""
    # et-operator kept the pods for an unknown value, so it is no reason to reject the job.
    rest = FieldReader(spec.canonicalized(cleanPodPolicy=None), spec.path)
    read = run_policy_field.read(rest, _clean_pod_policy(spec), _TYPES, spec_fields=_SPEC_FIELDS)
    # A run policy counts failures, and a TrainingJob restarts: the last failure is one more.
    limit = backoff_limit(spec) + 1 if _restarts_launcher(launcher) else None
    if read.failure_policy is not None:
        limit = None
    suspended = read.suspended or annotations.get(SUSPENDED_ANNOTATION) == "true"
    return attrs.evolve(read, backoff_limit=limit, suspended=suspended)


def suspension_patch(
    spec: FieldReader, annotations: Mapping[str, str], suspended: bool
) -> dict[str, Any]:
    """Return the merge patch of the field that the job uses, and of its annotation if it is set."""
    patch = run_policy_field.suspension_patch(spec, suspended, spec_fields=_SPEC_FIELDS)
    if SUSPENDED_ANNOTATION in annotations:
        patch["metadata"] = {"annotations": {SUSPENDED_ANNOTATION: str(suspended).lower()}}
    return patch


def replica_restart_policy(entry: FieldReader) -> RestartPolicy:
    return parse_enum(
        entry.string("restartPolicy"),
        RestartPolicy,
        field=entry.path_of("restartPolicy"),
        default=RestartPolicy.NEVER,
    )


def job_restart_policy(spec: FieldReader) -> RestartPolicy:
    """Read whether the whole job is restarted."""
    field = spec.path_of("restartPolicy")
    return parse_enum(
        spec.string("restartPolicy"),
        _JOB_RESTART_POLICIES,
        field=field,
        default=RestartPolicy.NEVER,
    )


def backoff_limit(spec: FieldReader) -> int:
    return spec.integer("backoffLimit", DEFAULT_BACKOFF_LIMIT, maximum=MAX_INT32)


def _restarts_launcher(launcher: FieldReader) -> bool:
    return replica_restart_policy(launcher) is not RestartPolicy.NEVER


def _clean_pod_policy(spec: FieldReader) -> CleanPodPolicy:
    if "cleanPodPolicy" not in spec:
        return CleanPodPolicy.RUNNING
    given = spec.string("cleanPodPolicy")
    return next((each for each in CleanPodPolicy if each == given), CleanPodPolicy.NONE)


def _worker_bounds(worker: FieldReader, replicas: int) -> tuple[int, int | None]:
    minimum = worker.integer("minReplicas", 1, minimum=1, maximum=MAX_REPLICAS)
    maximum = worker.optional_integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS)
    if replicas < minimum:
        raise InvalidJobError(
            f"is {minimum}, but replicas is {replicas}: it must not be more",
            field=worker.path_of("minReplicas"),
        )
    if maximum is not None and maximum < replicas:
        raise InvalidJobError(
            f"is {maximum}, but replicas is {replicas}: it must not be less",
            field=worker.path_of("maxReplicas"),
        )
    return minimum, maximum

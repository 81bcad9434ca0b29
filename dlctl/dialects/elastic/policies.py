"""What the fields of a TrainingJob say of failures, of its end, and of times when it is not to run.

What et-operator read otherwise, or not at all, is told where it is read.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.elastic import AttachMode, Elasticity
from dlctl.api.exitcodes import RetryRule
from dlctl.api.job import CleanPodPolicy, RunPolicy
from dlctl.dialects import run_policy
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.dialects.wire import MAX_REPLICAS, Fields, one_of
from dlctl.errors import InvalidJobError

SUSPENDED: Final = "job-supervisor.kube-ai.io/job-suspended"
DEFAULT_BACKOFF_LIMIT: Final = 6
# In the spec itself, as the rest of a TrainingJob's policies, or in ``runPolicy`` as Kubeflow's.
_IN_SPEC: Final = (
    "activeDeadlineSeconds", "schedulingPolicy", "suspend", "ttlSecondsAfterFinished",
)  # fmt: skip
_MOST: Final = 2**31 - 1
_JOB_POLICIES: Final = (RestartPolicy.NEVER, RestartPolicy.ON_FAILURE)


def elasticity(spec: Fields, launcher: Fields, worker: Fields, replicas: int) -> Elasticity:
    """Read how many workers there may be, and what is run again.

    :raises InvalidJobError: naming the field and the fix.
    """
    least, most = _bounds(worker, replicas)
    wish = restart_policy(worker)
    mode = spec.text("launcherAttachMode")
    attach = one_of(mode, AttachMode, field=spec.at("launcherAttachMode"), default=AttachMode.SSH)
    again = of_job(spec) is RestartPolicy.ON_FAILURE and not _launcher_again(launcher)
    limit = backoff_limit(spec)
    return Elasticity(
        attach=attach,
        least=least,
        most=most,
        replaces=wish is not RestartPolicy.NEVER,
        replaces_done=wish is RestartPolicy.ALWAYS,
        replacements=worker.optional_integer("backoffLimit", most=_MOST),
        whole_restarts=limit if again else 0,
        # What says nothing is made again; et-operator left such a job without a launcher for ever.
        needs_launcher=launcher.text("restartPolicy").lower() == RestartPolicy.NEVER.lower(),
    )


def launcher_retries(spec: Fields, launcher: Fields) -> RetryRule:
    """Read which exit codes of the launcher are worth another try, of it alone or of the job."""
    again = _launcher_again(launcher) or of_job(spec) is RestartPolicy.ON_FAILURE
    return RetryRule.TABLE_AND_SIGNALS if again else RetryRule.NONE


def worker_retries(worker: Fields) -> RetryRule:
    wish = restart_policy(worker)
    if wish is RestartPolicy.EXIT_CODE:
        return RetryRule.SIGNALS
    return RetryRule.NONE if wish is RestartPolicy.NEVER else RetryRule.ALL


def of_run(spec: Fields, launcher: Fields, annotations: Mapping[str, str]) -> RunPolicy:
    """Read when the job runs and what becomes of its pods afterwards."""
    # A word that et-operator did not know kept the pods, and is no reason to refuse the job now.
    rest = Fields(spec.respelt(cleanPodPolicy=None), spec.path)
    read = run_policy.read(rest, _clean_pod_policy(spec), in_spec=_IN_SPEC)
    limit = backoff_limit(spec) if _launcher_again(launcher) else None
    suspended = read.suspended or annotations.get(SUSPENDED) == "true"
    return attrs.evolve(read, backoff_limit=limit, suspended=suspended)


def restart_policy(entry: Fields) -> RestartPolicy:
    return one_of(
        entry.text("restartPolicy"),
        RestartPolicy,
        field=entry.at("restartPolicy"),
        default=RestartPolicy.NEVER,
    )


def of_job(spec: Fields) -> RestartPolicy:
    """Read whether the whole job is run again."""
    field = spec.at("restartPolicy")
    return one_of(
        spec.text("restartPolicy"), _JOB_POLICIES, field=field, default=RestartPolicy.NEVER
    )


def backoff_limit(spec: Fields) -> int:
    return spec.integer("backoffLimit", DEFAULT_BACKOFF_LIMIT, most=_MOST)


def _launcher_again(launcher: Fields) -> bool:
    return restart_policy(launcher) is not RestartPolicy.NEVER


def _clean_pod_policy(spec: Fields) -> CleanPodPolicy:
    if "cleanPodPolicy" not in spec:
        return CleanPodPolicy.RUNNING
    said = spec.text("cleanPodPolicy")
    return next((each for each in CleanPodPolicy if each == said), CleanPodPolicy.NONE)


def _bounds(worker: Fields, replicas: int) -> tuple[int, int | None]:
    least = worker.integer("minReplicas", 1, least=1, most=MAX_REPLICAS)
    most = worker.optional_integer("maxReplicas", least=1, most=MAX_REPLICAS)
    if replicas < least:
        raise InvalidJobError(
            f"is {least}, but there are only {replicas} replicas: it must not be more",
            field=worker.at("minReplicas"),
        )
    if most is not None and most < replicas:
        raise InvalidJobError(
            f"is {most}, but there are {replicas} replicas: it must not be less",
            field=worker.at("maxReplicas"),
        )
    return least, most

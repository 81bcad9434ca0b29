"""The operators that manifests were written for, and what differs under dlctl. Pure.

The pages under docs/migrate have all differences; here are those that a single job may notice.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.cli.manifests.pod_references import entry


@attrs.frozen
class Difference:
    """A difference, for jobs to which it applies."""

    text: str
    applies: Callable[[ReadOnlyJSON], bool] = lambda _: True


@attrs.frozen
class Operator:
    """An operator, the page about it, and what differs under dlctl."""

    name: str
    page: str
    differences: Sequence[Difference] = ()

    def differences_of(self, job: ReadOnlyJSON) -> list[str]:
        """Return the differences that a job may notice."""
        return [each.text for each in self.differences if each.applies(job)]


def operator_of(job: ReadOnlyJSON, chosen_version: str = "") -> Operator:
    """Return the operator that a served job was written for.

    A job of v1 may be read in the form of another version.
    """
    group, _, version = str(job["apiVersion"]).rpartition("/")
    if version == "v1":
        version = chosen_version or version
    for key in ((group, version, job["kind"]), (group, version, ""), (group, "", "")):
        if key in _OPERATORS:
            return _OPERATORS[key]
    return Operator("a framework of your own", "docs/extend/framework.md")


def _values(value: Any, field: str) -> list[Any]:
    """Return the values of a field, wherever in the job it is, except in pod templates."""
    if isinstance(value, list):
        return [found for item in value for found in _values(item, field)]
    if not isinstance(value, dict):
        return []
    here = [value[field]] if field in value else []
    below = (item for name, item in value.items() if name != "template")
    return here + [found for item in below for found in _values(item, field)]


def _has(field: str, *wanted: Any) -> Callable[[ReadOnlyJSON], bool]:
    return lambda job: any(value in wanted for value in _values(job.get("spec"), field))


def _lacks(field: str) -> Callable[[ReadOnlyJSON], bool]:
    return lambda job: not _values(job.get("spec"), field)


def _is(*kinds: str) -> Callable[[ReadOnlyJSON], bool]:
    return lambda job: job["kind"] in kinds


def _restarts(job: ReadOnlyJSON) -> bool:
    by_default = job["kind"] in ("PyTorchJob", "PaddleJob") and _lacks("restartPolicy")(job)
    return by_default or _has("restartPolicy", "OnFailure", "Always", "ExitCode")(job)


def _restarts_of(*kinds: str) -> Callable[[ReadOnlyJSON], bool]:
    restarts = _has("restartPolicy", "OnFailure", "Always")
    return lambda job: job["kind"] in kinds and restarts(job)


def _restarts_whole_job(job: ReadOnlyJSON) -> bool:
    return bool(entry(job, "spec").get("restartPolicy") == "OnFailure")


_BACKOFF: Final = Difference(
    "a failed pod is replaced after 10 s, doubling to 5 min, instead of at once"
)
_BACKOFF_OF_POLICY: Final = attrs.evolve(_BACKOFF, applies=_restarts)
_INTERRUPTED: Final = Difference(
    "a replica whose pod is deleted, drained or preempted is restarted, and does not count as "
    "failed"
)
_TRAINING: Final = (
    Difference(
        "restartPolicy ExitCode: 128, 139 and OOMKilled end the job as well; the annotation "
        "dlctl.dev/exit-code-policy: kubeflow restores the plain split at 128",
        _has("restartPolicy", "ExitCode"),
    ),
    Difference(
        "a failed replica is restarted under OnFailure and Always, instead of failing the job",
        _restarts_of("XGBoostJob", "MXJob", "MPIJob"),
    ),
    Difference("the launcher is held back until all workers run", _is("MPIJob")),
    Difference(
        "without a chief, the job fails if worker 0 does", _has("enableDynamicWorker", True)
    ),
    Difference("jobMode MXTune ends with its tuners", _has("jobMode", "MXTune")),
    _BACKOFF_OF_POLICY,
    _INTERRUPTED,
)
_NAMES: Final = Difference("pods are named by replica, without a random suffix")
_ENV: Final = Difference("the framework's variables are appended; your own values win")
_PERMANENT: Final = Difference("a permanent exit code of any replica fails the job at once")
_MPI: Final = (
    Difference("a failed worker is replaced while the launcher runs"),
    Difference(
        "launcherCreationPolicy WaitForWorkersReady also holds for a job that was suspended",
        _has("launcherCreationPolicy", "WaitForWorkersReady"),
    ),
)
# Its first versions waited for the workers as well, and restarted them.
_FIRST_MPI: Final = (
    Difference("the launcher and the workers are pods of the job, without Job and StatefulSet"),
)
_SECOND_MPI: Final = (
    *_FIRST_MPI,
    Difference(
        "backoffLimit, 6 by default, also counts the failures of workers",
        lambda job: not _has("backoffLimit", 0)(job),
    ),
    Difference(
        "a worker with restartPolicy Never that fails ends the job", _has("restartPolicy", "Never")
    ),
    _BACKOFF,
)
_KUBEFLOW: Final = "kubeflow.org"
_OLDER: Final = "docs/kinds/older-versions.md"
_TF: Final = Operator("Kubeflow tf-operator", "docs/migrate/tf-operator.md", _TRAINING)
_TENSORBOARD: Final = Difference(
    "tensorboard is ignored, as by all releases of tf-operator: run one in a Deployment",
    lambda job: "tensorboard" in entry(job, "spec"),
)
_MX: Final = (_ENV, _NAMES, _PERMANENT, _BACKOFF)
_FIRST_TF: Final = Operator(
    "Kubeflow tf-operator v1alpha1", "docs/migrate/tf-operator.md", (*_MX, _TENSORBOARD)
)
_OPERATORS: Final[Mapping[tuple[str, str, str], Operator]] = {
    (_KUBEFLOW, "v1", ""): Operator(
        "Kubeflow training-operator v1", "docs/migrate/training-operator.md", _TRAINING
    ),
    **{(_KUBEFLOW, version, "TFJob"): _TF for version in ("v1alpha2", "v1beta1", "v1beta2")},
    (_KUBEFLOW, "v1alpha1", "TFJob"): _FIRST_TF,
    ("tensorflow.org", "", ""): attrs.evolve(_FIRST_TF, name="tf-operator of tensorflow.org"),
    ("xgboostjob.kubeflow.org", "", ""): Operator("Kubeflow xgboost-operator", _OLDER, _TRAINING),
    (_KUBEFLOW, "v1alpha1", "PyTorchJob"): Operator(
        "Kubeflow pytorch-operator v1alpha1", _OLDER, _MX
    ),
    **{
        (_KUBEFLOW, version, "PyTorchJob"): Operator("Kubeflow pytorch-operator", _OLDER, _TRAINING)
        for version in ("v1alpha2", "v1beta1", "v1beta2")
    },
    (_KUBEFLOW, "v1alpha1", "MXJob"): Operator(
        "mx-operator (jzp1025)", "docs/migrate/mx-operators.md", _MX
    ),
    **{
        (_KUBEFLOW, version, "MXJob"): Operator("Kubeflow mxnet-operator", _OLDER, _TRAINING)
        for version in ("v1alpha2", "v1beta1")
    },
    (_KUBEFLOW, "v2beta1", "MPIJob"): Operator(
        "mpi-operator", "docs/migrate/mpi-operator.md", _MPI
    ),
    (_KUBEFLOW, "v1alpha1", "MPIJob"): Operator("mpi-operator v1alpha1", _OLDER, _FIRST_MPI),
    (_KUBEFLOW, "v1alpha2", "MPIJob"): Operator("mpi-operator v1alpha2", _OLDER, _SECOND_MPI),
    ("fioravanzo.org", "", ""): Operator(
        "mx-operator (StefanoFioravanzo)",
        "docs/migrate/mx-operators.md",
        (*_MX, Difference("services are headless")),
    ),
    ("mpba.fbk.eu", "", ""): Operator(
        "dl-operator",
        "docs/migrate/dl-operator.md",
        (
            Difference("pods belong to the job, and are named <job>-<type>-<RuntimeId>-<index>"),
            Difference("the whole pod template counts, and all containers of it"),
            _ENV,
        ),
    ),
    ("kai.alibabacloud.com", "", ""): Operator(
        "et-operator",
        "docs/migrate/et-operator.md",
        (
            Difference(
                "the launcher starts when all workers are ready, or minReplicas after 120 s"
            ),
            Difference("replacements of workers back off, and have the worker's backoffLimit"),
            Difference(
                "a whole-job restart backs off, and none follows a permanent exit code",
                _restarts_whole_job,
            ),
        ),
    ),
}

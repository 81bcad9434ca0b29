"""A spec of MPIJob v1alpha1 in the form of v1: a spec for the launcher and one for the workers.

The defaults are those of mpi-operator 0.2.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.dialects.failure_policy import schema as failure_policy_schema
from dlctl.dialects.field_reader import MAX_INT32, MAX_REPLICAS, FieldReader
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.mpi_ssh_pods import SSH_PATH_FIELD

_GPU: Final = "nvidia.com/gpu"
_RESOURCES: Final = (_GPU, "cpu")
_DEFAULT_BACKOFF_LIMIT: Final = 6
_WORKER_COMMAND: Final[JSON] = {"command": ["sleep"], "args": ["365d"]}
# The first has been replaced by the second.
_MASTER_LABELS: Final = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")


def as_map(spec: Any) -> JSON:
    """Return the spec in the form of v1.

    :raises InvalidJobError: naming the field and the fix.
    """
    fields = FieldReader(spec, "spec")
    template = _Template(fields.value("template"))
    resource = fields.choice("processingResourceType", _RESOURCES, _GPU)
    workers, units, is_given = _workers(fields, template.limit(resource))
    worker = template.with_container(_WORKER_COMMAND)
    if is_given:
        worker = worker.with_limit(resource, units)
    policy = "Never" if template.spec.get("restartPolicy") == "Never" else "OnFailure"
    return {
        "mpiReplicaSpecs": {
            "Launcher": {
                "replicas": 1,
                "restartPolicy": policy,
                "template": _launcher(fields, template).wire(),
            },
            "Worker": {"replicas": workers, "restartPolicy": "Always", "template": worker.wire()},
        },
        "slotsPerWorker": _slots(fields) or units or 1,
        "runPolicy": run_policy(fields),
    }


class _Template:
    """A pod template with at least one container."""

    def __init__(self, value: Any) -> None:
        template = FieldReader(value, "spec.template")
        self.metadata = template.value("metadata")
        spec = template.object("spec")
        containers = spec.value("containers")
        if not isinstance(containers, Sequence) or not containers:
            raise InvalidJobError("is missing: give one", field=spec.path_of("containers"))
        self.containers = containers
        self.first = FieldReader(containers[0], f"{spec.path_of('containers')}[0]")
        self.spec = spec.canonicalized(containers=containers)

    def wire(self) -> JSON:
        # The replica specs have the policy.
        spec = {name: value for name, value in self.spec.items() if name != "restartPolicy"}
        return {"metadata": self.metadata, "spec": spec} if self.metadata else {"spec": spec}

    def limit(self, resource: str) -> int:
        """Return a whole number of units that the first container may use; else 0."""
        limits = self.first.object("resources").object("limits")
        text = str(limits.value(resource) or 0)
        return int(text) if text.isdecimal() else 0

    def with_container(self, fields: JSON) -> "_Template":
        """Return a template with other fields of the first container; null removes one."""
        first = self.first.canonicalized(**fields)
        return self.with_spec({"containers": [first, *self.containers[1:]]})

    def with_limit(self, resource: str, units: int) -> "_Template":
        resources = self.first.object("resources")
        limits = resources.object("limits").canonicalized(**{resource: units})
        return self.with_container({"resources": resources.canonicalized(limits=limits)})

    def with_spec(self, fields: JSON) -> "_Template":
        return _Template({"metadata": self.metadata, "spec": {**self.spec, **fields}})


def _slots(fields: FieldReader) -> int:
    """Return the processes per worker that the job gives; 0 if none."""
    given = fields.integer("slotsPerWorker", 0, maximum=MAX_INT32)
    # A webhook of v2beta1, such as Kueue's, adds that version's defaults: this field is 1 then.
    return 0 if given == 1 and SSH_PATH_FIELD in fields else given


def _workers(fields: FieldReader, limit: int) -> tuple[int, int, bool]:
    """Return the number of workers, the units of each, and whether the job gives units in all."""
    given = [name for name in ("gpus", "processingUnits") if name in fields]
    if len(given) + ("replicas" in fields) > 1:
        names = ", ".join([*given, *(["replicas"] if "replicas" in fields else [])])
        raise InvalidJobError(f"has {names}, which exclude each other: give one", field="spec")
    if not given:
        return fields.integer("replicas", 0, maximum=MAX_REPLICAS), limit, False
    [name] = given
    total = fields.integer(name, 0, maximum=MAX_INT32)
    per_node = fields.integer(f"{name}PerNode", 1, minimum=1, maximum=MAX_INT32)
    if total < per_node:
        return 1, total, True
    if total % per_node:
        message = f"is {total}, but must be a multiple of {name}PerNode, which is {per_node}"
        raise InvalidJobError(message, field=fields.path_of(name))
    if (workers := total // per_node) > MAX_REPLICAS:
        message = f"makes {workers} workers, but a job may have {MAX_REPLICAS}: lower it"
        raise InvalidJobError(message, field=fields.path_of(name))
    return workers, per_node, True


def _launcher(fields: FieldReader, template: _Template) -> _Template:
    """Return the launcher's template: without the workers' resources, on a master if it says so."""
    resources = fields.value("launcherResources") or None
    launcher = template.with_container({"resources": resources})
    if not fields.boolean("launcherOnMaster", default=False):
        return launcher
    tolerations = [{"key": label, "effect": "NoSchedule"} for label in _MASTER_LABELS]
    # Any one of the terms.
    terms = [
        {"matchExpressions": [{"key": label, "operator": "Exists"}]} for label in _MASTER_LABELS
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return launcher.with_spec({"tolerations": tolerations, "affinity": {"nodeAffinity": required}})


def run_policy(fields: FieldReader) -> Mapping[str, Any]:
    """Return the run policy of a spec, whose other fields may be invalid."""
    limit = fields.integer("backoffLimit", _DEFAULT_BACKOFF_LIMIT, maximum=MAX_INT32 - 1)
    given = {
        "cleanPodPolicy": fields.value("cleanPodPolicy") or "Running",
        "activeDeadlineSeconds": fields.value("activeDeadlineSeconds"),
        "ttlSecondsAfterFinished": fields.value("ttlSecondsAfterFinished"),
        # A batch/v1 Job ran the launcher: its limit counts retries, not failures.
        "backoffLimit": limit + 1 if limit else 0,
    }
    policy = fields.object("runPolicy")
    if failure_policy_schema.FIELD in policy:
        del given["backoffLimit"]
    known = {name: value for name, value in given.items() if value is not None}
    return {**known, **policy.canonicalized()}

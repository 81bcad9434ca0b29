"""TrainingJob, et-operator's kind: a launcher, and a varying number of workers.

Names, labels and defaults are et-operator's, because its clients rely on them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import (
    LAUNCHER,
    LAUNCHER_REPLICA,
    WORKER,
    Job,
    Replica,
    ReplicaSpec,
    SuccessPolicy,
)
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects.child_names import check_child_names
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.et_operator import policies, training_status
from dlctl.dialects.et_operator.resources import GROUP, SCALE_OUTS
from dlctl.dialects.et_operator.training_conditions import TrainingJobMessages
from dlctl.dialects.et_operator.training_schema import (
    root_rules,
    training_job_spec_schema,
    training_job_status_schema,
)
from dlctl.dialects.field_reader import MAX_REPLICAS, FieldReader
from dlctl.dialects.pods.pod_templates import read_pod_template
from dlctl.errors import InvalidJobError
from dlctl.frameworks.horovod.job import SERVICE_PORTS, TrainingJob

_REPLICA_SPECS_FIELD: Final = "etReplicaSpecs"
_JOB_NAME_LABEL: Final = "training-job-name"
# Indexes grow as workers are replaced: names must have room for that.
_MAX_INDEX: Final = 999
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@attrs.frozen
class TrainingJobDialect(Dialect):
    """The only form of TrainingJob."""

    framework: type[TrainingJob] = TrainingJob
    supports_ttl: bool = True
    # The indexes of the workers are in it, which change as workers join and leave.
    status_affects_replicas: bool = True
    requires_spec: bool = False
    types_without_service = frozenset({LAUNCHER})

    @property
    def printer_columns(self) -> Sequence[tuple[str, str, str, int]]:
        return (
            ("Phase", ".status.phase", "string", 0),
            ("Age", ".metadata.creationTimestamp", "date", 0),
        )

    def matches(self, spec: Any) -> bool:
        return isinstance(spec, Mapping) and any(
            name.lower() == _REPLICA_SPECS_FIELD.lower() for name in spec
        )

    def read(self, obj: DecodedObject) -> Job:
        fields = FieldReader(obj.spec, "spec")
        entries = fields.object(_REPLICA_SPECS_FIELD)
        launcher, worker = _replica_fields(entries, LAUNCHER), _replica_fields(entries, WORKER)
        fields.optional_integer("slotsPerWorker", minimum=1, maximum=MAX_REPLICAS)
        name = obj.metadata.name
        annotations = obj.metadata.annotations or {}
        workers = self._worker_spec(worker, name)
        elasticity = policies.read_elasticity(fields, launcher, worker, workers.replicas)
        last = max(_MAX_INDEX, (elasticity.max_replicas or workers.replicas) - 1)
        check_child_names(
            name, [f"{training_status.worker_name_prefix(name)}{last}", f"{name}-{LAUNCHER}"]
        )
        status = self.read_status(obj)
        if status.written_by_other_operator and status.membership:
            # The other operator's last observed replica count is not known.
            membership = attrs.evolve(status.membership, observed_replicas=workers.replicas)
            status = attrs.evolve(status, membership=membership)
        if status.membership:
            workers = attrs.evolve(workers, explicit_indexes=status.membership.members)
        chief = LAUNCHER_REPLICA
        job = Job(
            resource=obj.resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=(self._launcher_spec(fields, launcher), workers),
            success_policy=SuccessPolicy((chief,), (chief,), tolerated_types=frozenset({WORKER})),
            name_prefix=name,
            runtime_id="",
            status=status,
            run_policy=policies.read_run_policy(fields, launcher, annotations),
            annotations=annotations,
            elasticity=elasticity,
            spec=fields.canonicalized(slotsPerWorker=fields.value("slotsPerWorker")),
        )
        return attrs.evolve(job, messages=self.messages(job))

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        fields = FieldReader(obj.spec, "spec")
        launcher = fields.object(_REPLICA_SPECS_FIELD).object(LAUNCHER)
        return policies.read_run_policy(fields, launcher, obj.metadata.annotations or {})

    def suspension_patch(self, obj: DecodedObject, *, suspended: bool) -> ReadOnlyJSON | None:
        return policies.suspension_patch(
            FieldReader(obj.spec, "spec"), obj.metadata.annotations or {}, suspended
        )

    def messages(self, job: Job) -> ConditionMessages:
        waits = job.annotations.get(policies.SUSPENDED_ANNOTATION) == "true"
        return TrainingJobMessages(job.resource.kind, job.key, waits_for_resources=waits)

    def read_status(self, obj: DecodedObject) -> JobStatus:
        return training_status.read(obj.status, obj.metadata.name)

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        return training_status.write(status)

    def publishes_not_ready_addresses(self, job: Job) -> bool:
        return False

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        labels = _type_labels(job.key.name, replica.type)
        if replica.type == WORKER:
            labels["replica-index"] = str(replica.index)
        return labels

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        scaling = job.status.membership.scaling if job.status.membership else None
        if scaling is None or replica.type != WORKER or replica.index not in scaling.workers:
            return {}
        kind, _, scaler = scaling.scaler.partition(":")
        name = scaler.rpartition("/")[2]
        # A name may be longer than a label value; the pod matters more.
        named = scaling.is_scale_out and kind == SCALE_OUTS.kind and _LABEL_VALUE.fullmatch(name)
        return {"scaleout-name": name} if named else {}

    @property
    def orphan_selector(self) -> str:
        return f"group-name={GROUP}"

    def spec_schema(self) -> ReadOnlyJSON:
        return training_job_spec_schema()

    def status_schema(self) -> ReadOnlyJSON:
        return training_job_status_schema()

    @property
    def scale_subresource(self) -> ReadOnlyJSON | None:
        status = ".status.replicaStatuses.Worker"
        return {
            "specReplicasPath": f".spec.{_REPLICA_SPECS_FIELD}.{WORKER}.replicas",
            "statusReplicasPath": f"{status}.active",
            "labelSelectorPath": f"{status}.selector",
        }

    @property
    def validation_rules(self) -> Sequence[ReadOnlyJSON]:
        return root_rules(len(f"-{WORKER}-{_MAX_INDEX}"))

    def _launcher_spec(self, fields: FieldReader, entry: FieldReader) -> ReplicaSpec:
        replicas = entry.integer("replicas", 1)
        if replicas != 1:
            raise InvalidJobError(
                f"is {replicas}, but there must be exactly 1 launcher",
                field=entry.path_of("replicas"),
            )
        template = _read_template(entry)
        return ReplicaSpec(
            type=LAUNCHER,
            replicas=1,
            template=template,
            container=template["spec"]["containers"][0]["name"],
            port=self.framework.default_port(),
            retry_policy=policies.launcher_retry_policy(fields, entry),
            create_last=True,
            indexed=False,
            keep_after_finish=True,
        )

    def _worker_spec(self, entry: FieldReader, name: str) -> ReplicaSpec:
        template = _read_template(entry)
        labels = _type_labels(name, WORKER)
        return ReplicaSpec(
            type=WORKER,
            replicas=entry.integer("replicas", 1, minimum=1, maximum=MAX_REPLICAS),
            template=template,
            container=template["spec"]["containers"][0]["name"],
            port=self.framework.default_port(),
            ports=SERVICE_PORTS,
            retry_policy=policies.worker_retry_policy(entry),
            label_selector=",".join(f"{label}={value}" for label, value in sorted(labels.items())),
        )


def _replica_fields(entries: FieldReader, type_: str) -> FieldReader:
    if type_ not in entries:
        raise InvalidJobError(
            f"is missing: give a spec of the {type_}", field=entries.path_of(type_)
        )
    return entries.object(type_)


def _read_template(entry: FieldReader) -> Mapping[str, Any]:
    """Read a pod template; the controller restarts its pods, never the kubelet."""
    return read_pod_template(
        entry.value("template"), entry.path_of("template"), restart_policy="Never"
    )


def _type_labels(name: str, type_: str) -> dict[str, str]:
    return {"group-name": GROUP, _JOB_NAME_LABEL: name, "training-job-role": type_}

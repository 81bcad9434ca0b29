"""Kubeflow's form: ``<field_prefix>ReplicaSpecs`` maps replica types to specs, beside a run policy.

Names, labels and defaults are those of the kind's operator, because its clients rely on them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import Job, Replica, ReplicaSpec, SpecWarning, SuccessPolicy
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects import run_policy_field, schema_parts
from dlctl.dialects.child_names import check_child_names
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.failure_policy import effects as failure_policy_effects
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow import cel_rules, replica_map_schema
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.dialects.kubeflow.replica_spec_reader import read_replica_specs
from dlctl.dialects.status import replica_map_status, status_codec
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.job import KubeflowJob

_PRINTER_COLUMNS: Final = (
    ("State", ".status.conditions[-1:].type", "string", 0),
    ("Age", ".metadata.creationTimestamp", "date", 0),
)
_VERSION_COLUMN: Final = ("Version", ".status.dlctl.version", "string", 0)
_OVERWRITTEN_MESSAGE: Final = (
    "Restart policy in pod template will be overwritten by restart policy in replica spec"
)


@attrs.frozen
class ReplicaMap(Dialect):
    """The map form of one of Kubeflow's kinds."""

    kind: KubeflowKind
    framework: type[KubeflowJob] = attrs.field(init=False)
    # True if it is the form of v1: earlier versions lack the fields that only v1 has schemas of.
    is_v1: bool = True
    exact_field: str = attrs.field(init=False)
    overrides_user_env: bool = True
    supports_ttl: bool = True

    @framework.default
    def _framework_of_kind(self) -> type[KubeflowJob]:
        return self.kind.framework

    @exact_field.default
    def _replica_specs_field(self) -> str:
        return self.kind.replica_specs_field

    @property
    def replica_labels(self) -> Collection[str]:
        return self.kind.label("replica-type"), self.kind.label("replica-index")

    @property
    def stores_defaults(self) -> bool:
        return not self.is_v1

    @property
    def ignores_unknown_fields(self) -> bool:
        return not self.is_v1 or self.kind.ignores_unknown_fields

    @property
    def printer_columns(self) -> Sequence[tuple[str, str, str, int]]:
        columns = _PRINTER_COLUMNS[::-1] if self.kind.schema.shows_age_first else _PRINTER_COLUMNS
        return (*columns, _VERSION_COLUMN) if self.kind.schema.shows_version else columns

    @property
    def foreign_fields(self) -> Mapping[str, str]:
        kind = self.kind
        listed = ["replicaSpecs", *(kind.schema.list_properties or {})] if kind.list_form else []
        return {**dict.fromkeys(listed, "v1alpha1"), **kind.schema.foreign_fields}

    @property
    def has_services(self) -> bool:
        return self.kind.has_services

    def matches(self, spec: Any) -> bool:
        wanted = self.kind.replica_specs_field.lower()
        return isinstance(spec, Mapping) and any(name.lower() == wanted for name in spec)

    def read(self, obj: DecodedObject) -> Job:
        fields = FieldReader(obj.spec, "spec")
        specs = read_replica_specs(self.kind, fields, obj.metadata)
        name = obj.metadata.name
        names = [_last_child_name(name, spec) for spec in specs]
        check_child_names(name, names, has_services=self.has_services)
        job = Job(
            resource=obj.resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            success_policy=SuccessPolicy((), ()),
            name_prefix=name,
            runtime_id="",
            status=self.read_status(obj),
            run_policy=self.run_policy(obj),
            warnings=tuple(self._warnings(fields)),
            spec=fields.canonicalized(),
        )
        framework = self.framework(job)
        return attrs.evolve(
            job, success_policy=framework.success_policy(), messages=self.messages(job)
        )

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        return run_policy_field.read(
            FieldReader(obj.spec, "spec"),
            CleanPodPolicy.NONE,
            self.kind.types_by_name,
            spec_fields=run_policy_field.LEGACY_SPEC_FIELDS
            if self.kind.schema.has_policies_in_spec
            else (),
        )

    def suspension_patch(self, obj: DecodedObject, *, suspended: bool) -> ReadOnlyJSON | None:
        return run_policy_field.suspension_patch(FieldReader(obj.spec, "spec"), suspended)

    def messages(self, job: Job) -> ConditionMessages:
        return self.kind.condition_messages(job)

    def managed_by_external_controller(self, obj: DecodedObject) -> bool:
        try:
            policy = FieldReader(obj.spec, "spec").object("runPolicy")
            controllers = self.kind.controllers
            return policy.string("managedBy", controllers[0]) not in controllers
        except InvalidJobError:
            return False

    def read_status(self, obj: DecodedObject) -> JobStatus:
        status = replica_map_status.read(status_codec.decode(obj.status), self.kind)
        return attrs.evolve(status, version=obj.chosen_version)

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        return replica_map_status.write(status, self.kind)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        labels = self.kind.type_labels(job.key.name, replica.type)
        spec = job.replica_spec(replica.type)
        if spec is None or spec.indexed:
            labels[self.kind.label("replica-index")] = str(replica.index)
        return labels

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        master = self.framework(job).is_master(replica)
        return {self.kind.label("job-role"): "master"} if master else {}

    def publishes_not_ready_addresses(self, job: Job) -> bool:
        return False

    @property
    def orphan_selector(self) -> str:
        return "=".join(self.kind.operator_label)

    def status_schema(self) -> ReadOnlyJSON:
        return schema_parts.status_schema()

    def spec_schema(self) -> ReadOnlyJSON:
        return replica_map_schema.replica_map_schema(self.kind, is_v1=self.is_v1)

    def manifest_schema(self) -> ReadOnlyJSON:
        schema = replica_map_schema.replica_map_schema(self.kind, is_v1=self.is_v1)
        return replica_map_schema.add_former_fields(schema, self.kind)

    @property
    def validation_rules(self) -> Sequence[ReadOnlyJSON]:
        return (
            [cel_rules.child_name_length(self.kind.replica_specs_field)]
            if self.has_services
            else []
        )

    @property
    def scale_subresource(self) -> ReadOnlyJSON | None:
        if not self.kind.is_scalable:
            return None
        status = ".status.replicaStatuses.Worker"
        return {
            "specReplicasPath": f".spec.{self.kind.replica_specs_field}.Worker.replicas",
            "statusReplicasPath": f"{status}.active",
            "labelSelectorPath": f"{status}.selector",
        }

    def _warnings(self, fields: FieldReader) -> Iterator[SpecWarning]:
        entries = fields.object(self.kind.replica_specs_field)
        templates = [entries.object(name).object("template") for name in entries.names()]
        if any(template.object("spec").string("restartPolicy") for template in templates):
            reason = self.kind.messages.template_restart_policy_reason
            yield SpecWarning(reason, _OVERWRITTEN_MESSAGE)
        policies = {name: entries.object(name).string("restartPolicy") for name in entries.names()}
        yield from failure_policy_effects.restart_policy_warnings(
            fields.object("runPolicy"), policies
        )


def _last_child_name(name: str, spec: ReplicaSpec) -> str:
    index = f"-{max(spec.replicas - 1, 0)}" if spec.indexed else ""
    return f"{name}-{spec.type}{index}"

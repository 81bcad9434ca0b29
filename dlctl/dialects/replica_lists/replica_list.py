"""The list form of v1alpha1: ``replicaSpecs`` is a list whose entries name their replica type.

tf-operator had it at first, and both mx-operators; defaults are those of each.
"""

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from dlctl.api.job import Job, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects import run_policy_field
from dlctl.dialects.child_names import MAX_PREFIX_LENGTH, check_names_with_runtime_id, runtime_id
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.field_reader import MAX_REPLICAS, FieldReader
from dlctl.dialects.pods.pod_templates import read_pod_template, training_container
from dlctl.dialects.replica_lists import list_schema, list_status, shared_status
from dlctl.dialects.replica_lists.list_form import ListForm
from dlctl.dialects.replica_lists.messages import ReplicaListMessages
from dlctl.dialects.replica_lists.replica_types import (
    check_replica_types,
    check_singletons,
    read_replica_type,
)
from dlctl.errors import InvalidJobError, counted
from dlctl.frameworks.dljob import DLJob


class JobMode(enum.StrEnum):
    """Whether replicas form a cluster; an absent mode means they do."""

    DIST = "dist"
    LOCAL = "local"


@attrs.frozen
class ReplicaList(Dialect):
    """The list form of one API group."""

    form: ListForm
    framework: type[DLJob] = attrs.field(init=False)
    service_per_replica: bool = attrs.field(init=False)
    extra_env: Mapping[str, str] = attrs.field(init=False)
    replica_labels = ("job_type", "task_index")
    patches_spec: bool = True
    supports_ttl: bool = True

    @framework.default
    def _framework_of_form(self) -> type[DLJob]:
        return self.form.framework

    @service_per_replica.default
    def _services_of_form(self) -> bool:
        return self.form.service_per_replica

    @extra_env.default
    def _env_of_form(self) -> Mapping[str, str]:
        return self.form.extra_env

    @property
    def ignores_unknown_fields(self) -> bool:
        return True

    def matches(self, spec: Any) -> bool:
        return isinstance(spec, Mapping) and any(
            name.lower() in ("replicaspecs", "replica_specs") for name in spec
        )

    def read(self, obj: DecodedObject) -> Job:
        fields = FieldReader(obj.spec, "spec")
        specs = self._read_replica_specs(fields)
        local = fields.enum("jobMode", JobMode, JobMode.DIST) is JobMode.LOCAL
        chief = self._read_chief(fields)
        if local:
            specs, chief = _local_worker(specs, fields)
        elif self.form.requires_singletons:
            check_singletons(specs, self.framework, fields.path_of("replicaSpecs"))
        given_id = fields.string("RuntimeId")
        job = Job(
            resource=obj.resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            success_policy=SuccessPolicy.of_chief(chief),
            name_prefix=obj.metadata.name[:MAX_PREFIX_LENGTH],
            runtime_id=given_id or runtime_id(obj.metadata.uid),
            status=self.read_status(obj),
            run_policy=self._read_run_policy(fields),
            is_local=local,
            scheduler_name=fields.string("schedulerName"),
            spec_patch=None if given_id else _spec_patch(fields, obj),
        )
        check_names_with_runtime_id(
            obj.metadata.name, job.runtime_id, specs, fields.path_of("RuntimeId")
        )
        self._check_chief(job, chief, fields)
        return attrs.evolve(job, messages=self.messages(job))

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        return self._read_run_policy(FieldReader(obj.spec, "spec"))

    def suspension_patch(self, obj: DecodedObject, *, suspended: bool) -> ReadOnlyJSON | None:
        return run_policy_field.suspension_patch(FieldReader(obj.spec, "spec"), suspended)

    def messages(self, job: Job) -> ConditionMessages:
        return ReplicaListMessages(job.resource.kind, job.key)

    def read_status(self, obj: DecodedObject) -> JobStatus:
        if self.form.storage_kind is not None:
            return shared_status.read(obj.status, self.form.status_type_field)
        return list_status.read(obj.status, self.form.status_type_field)

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        if self.form.storage_kind is not None:
            return shared_status.write(status, self.form.status_type_field, self.form.storage_kind)
        return list_status.write(status, self.form.status_type_field)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {
            self.form.group_label: "",
            "job_type": replica.type.upper(),
            "runtime_id": job.runtime_id,
            f"{self.form.field_prefix}_job_name": job.key.name,
            "task_index": str(replica.index),
        }

    def status_schema(self) -> ReadOnlyJSON:
        return list_schema.status_schema(shared=self.form.storage_kind is not None)

    def spec_schema(self) -> ReadOnlyJSON:
        return list_schema.replica_list_schema(self.form)

    def manifest_schema(self) -> ReadOnlyJSON:
        schema = self.spec_schema()
        kind = self.form.storage_kind
        former = (kind.schema.list_properties if kind else None) or {}
        ignored: ReadOnlyJSON = {name: {} for name in self.form.ignored_fields}
        return {**schema, "properties": {**former, **ignored, **schema["properties"]}}

    def _read_run_policy(self, fields: FieldReader) -> RunPolicy:
        clean = fields.enum("cleanupPodPolicy", CleanPodPolicy, self.form.default_clean_pod_policy)
        types = {type_: type_ for type_ in self.framework.replica_types}
        return run_policy_field.read(fields, clean, types)

    def _read_replica_specs(self, fields: FieldReader) -> tuple[ReplicaSpec, ...]:
        if "replica_specs" in fields:
            raise InvalidJobError("is not a field: write replicaSpecs", field="spec.replica_specs")
        image = fields.string(f"{self.form.field_prefix}Image")
        specs = tuple(
            self._read_replica_spec(entry, image) for entry in fields.items("replicaSpecs")
        )
        check_replica_types(specs, self.framework, fields.path_of("replicaSpecs"))
        return specs

    def _read_replica_spec(self, entry: FieldReader, image: str) -> ReplicaSpec:
        type_ = read_replica_type(
            entry, self.form.type_field, self.framework, default=self.form.default_type
        )
        template = entry.value("template")
        server = self.form.image_server
        if template is None and server and type_ == server.replica_type:
            template = server.template(self.framework.container_name(), image)
        template = read_pod_template(template, entry.path_of("template"))
        port = entry.port(self.form.port_field, self.form.default_port)
        return ReplicaSpec(
            type=type_,
            replicas=entry.integer("replicas", 1, maximum=MAX_REPLICAS),
            template=template,
            container=training_container(template, [self.framework.container_name()]),
            port=port,
            ports={self.form.port_name: port},
            retry_policy=self.form.retry_policy,
        )

    def _read_chief(self, fields: FieldReader) -> Replica:
        framework = self.framework
        if "terminationPolicy" not in fields:
            return framework.default_chief()
        policy = fields.object("terminationPolicy")
        if self.form.chief_field not in policy:
            raise InvalidJobError(
                "is missing: name the replica that decides the job, or leave out terminationPolicy",
                field=policy.path_of(self.form.chief_field),
            )
        chief = policy.object(self.form.chief_field)
        type_ = read_replica_type(
            chief, "replicaName", framework, default=framework.default_chief().type
        )
        return Replica(type_, chief.integer(self.form.chief_index_field, 0))

    def _check_chief(self, job: Job, chief: Replica, fields: FieldReader) -> None:
        policy = fields.path_of("terminationPolicy")
        count = job.replica_count(chief.type)
        if job.replica_spec(chief.type) is None:
            raise InvalidJobError(
                f"has no entry of type {chief.type.upper()}, which decides the job: add one, or "
                "name another in terminationPolicy",
                field=fields.path_of("replicaSpecs"),
            )
        if chief.index >= count:
            there = counted(count, f"{chief.type.upper()} replica")
            raise InvalidJobError(
                f"is {chief.index}, but the job has {there}: indexes begin at 0",
                field=f"{policy}.{self.form.chief_field}.{self.form.chief_index_field}",
            )


def _local_worker(
    specs: tuple[ReplicaSpec, ...], fields: FieldReader
) -> tuple[tuple[ReplicaSpec, ...], Replica]:
    worker = next((spec for spec in specs if spec.type == "worker"), None)
    if worker is None:
        raise InvalidJobError(
            "is local, which runs one WORKER, and replicaSpecs lists none: add it",
            field=fields.path_of("jobMode"),
        )
    return (attrs.evolve(worker, replicas=1),), Replica("worker", 0)


def _spec_patch(fields: FieldReader, obj: DecodedObject) -> Mapping[str, Any]:
    # An empty field in another spelling is replaced, so that there is only one.
    return {fields.original_name("RuntimeId"): runtime_id(obj.metadata.uid)}

"""dl-operator's form: ``spec`` itself is the list of replicas, and all keys are required.

Frameworks without a dialect of their own are served in this one.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dlctl.api.job import Job, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects.child_names import MAX_PREFIX_LENGTH, check_names_with_runtime_id, runtime_id
from dlctl.dialects.dialect import DecodedObject, Dialect
from dlctl.dialects.failure_policy import reader as failure_policy_reader
from dlctl.dialects.field_reader import MAX_REPLICAS, FieldReader, read_objects
from dlctl.dialects.pods.pod_templates import read_pod_template, training_container
from dlctl.dialects.replica_lists import list_schema, list_status
from dlctl.dialects.replica_lists.replica_types import (
    check_replica_types,
    check_singletons,
    read_replica_type,
)
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob

TYPE_FIELD = "replicaType"


@attrs.frozen
class BareList(Dialect):
    """The bare list: no runtime id, and no policy but one in an annotation."""

    framework: type[DLJob]
    default_port: int | None = None
    port_name: str = "dlport0"
    service_per_replica: bool = True
    replica_labels = ("pod_name",)
    extra_env: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def ignores_unknown_fields(self) -> bool:
        return True

    def matches(self, spec: Any) -> bool:
        return isinstance(spec, list)

    def read(self, obj: DecodedObject) -> Job:
        framework = self.framework
        entries = read_objects(obj.spec, "spec")
        specs = tuple(self._read_replica_spec(entry) for entry in entries)
        check_replica_types(specs, framework, "spec")
        check_singletons(specs, framework, "spec")
        chief = framework.default_chief()
        if not any(spec.type == chief.type and spec.replicas for spec in specs):
            raise InvalidJobError(
                f"has no {chief.type.upper()}, which decides the job: add an entry", field="spec"
            )
        identity = runtime_id(obj.metadata.uid)
        check_names_with_runtime_id(obj.metadata.name, identity, specs, "metadata.uid")
        return Job(
            resource=obj.resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            success_policy=SuccessPolicy.of_chief(chief),
            name_prefix=obj.metadata.name[:MAX_PREFIX_LENGTH],
            runtime_id=identity,
            status=self.read_status(obj),
            run_policy=self.run_policy(obj),
        )

    def run_policy(self, obj: DecodedObject) -> RunPolicy:
        types = {type_: type_ for type_ in self.framework.replica_types}
        failures = failure_policy_reader.read_annotation(obj.metadata.annotations or {}, types)
        return RunPolicy(failure_policy=failures)

    def read_status(self, obj: DecodedObject) -> JobStatus:
        return list_status.read(obj.status, TYPE_FIELD)

    def write_status(self, status: JobStatus) -> ReadOnlyJSON:
        return list_status.write(status, TYPE_FIELD)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {"pod_name": job.child_name(replica), "job_name": job.key.name}

    def status_schema(self) -> ReadOnlyJSON:
        return list_schema.status_schema()

    def spec_schema(self) -> ReadOnlyJSON:
        return list_schema.bare_list_schema(self.framework)

    def _read_replica_spec(self, entry: FieldReader) -> ReplicaSpec:
        if "replicas" not in entry:
            raise InvalidJobError("is missing: say how many", field=entry.path_of("replicas"))
        template = read_pod_template(entry.value("template"), entry.path_of("template"))
        port = self.default_port or self.framework.default_port()
        return ReplicaSpec(
            type=read_replica_type(entry, TYPE_FIELD, self.framework),
            replicas=entry.integer("replicas", 1, maximum=MAX_REPLICAS),
            template=template,
            container=training_container(template, [self.framework.container_name()]),
            port=port,
            ports={self.port_name: port},
            retry_policy=RetryPolicy.TABLE_AND_SIGNALS,
        )

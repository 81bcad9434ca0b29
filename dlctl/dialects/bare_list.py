"""dl-operator's form: ``spec`` itself is the list of replicas, and all keys must be there.

Every framework that brings no spelling of its own is served in this one.
"""

from collections.abc import Mapping
from typing import Any

import attrs
import msgspec

from dlctl.api.exitcodes import ExitClass
from dlctl.api.job import Job, JobObject, Replica, ReplicaSpec
from dlctl.api.meta import Resource
from dlctl.api.status import JobStatus
from dlctl.dialects import list_schema, list_status
from dlctl.dialects.dialect import JSON, Dialect
from dlctl.dialects.entries import check_singletons, check_types, pod_template, replica_type
from dlctl.dialects.names import PREFIX, check_names, runtime_id
from dlctl.dialects.wire import MAX_REPLICAS, Fields, objects
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob

TYPE_FIELD = "replicaType"


@attrs.frozen
class BareList(Dialect):
    """The bare list, with nothing beside it: no policies and no runtime id to preset."""

    default_port: int | None = None
    port_name: str = "dlport0"
    service_per_replica: bool = True
    extra_environment: Mapping[str, str] = attrs.field(factory=dict)

    def recognises(self, spec: Any) -> bool:
        return isinstance(spec, list)

    def read(self, obj: JobObject, resource: Resource, framework: type[DLJob]) -> Job:
        entries = objects(msgspec.json.decode(obj.spec), "spec")
        specs = tuple(self._replica_spec(entry, framework) for entry in entries)
        check_types(specs, framework, "spec")
        check_singletons(specs, framework, "spec")
        chief = framework.default_chief()
        if not any(spec.type == chief.type and spec.replicas for spec in specs):
            raise InvalidJobError(
                f"has no {chief.type.upper()}, which decides the job: add an entry", field="spec"
            )
        identity = runtime_id(obj.metadata.uid)
        check_names(obj.metadata.name, identity, specs, "metadata.uid")
        return Job(
            resource=resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            chief=chief,
            child_prefix=obj.metadata.name[:PREFIX],
            runtime_id=identity,
            status=self.read_status(obj),
            signals=ExitClass.RETRYABLE,
        )

    def read_status(self, obj: JobObject) -> JobStatus:
        return list_status.read(obj.status, "")

    def write_status(self, status: JobStatus) -> JSON:
        return list_status.write(status, "")

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {"pod_name": job.child_name(replica), "job_name": job.key.name}

    def spec_schema(self, framework: type[DLJob]) -> JSON:
        return list_schema.of_bare_list(framework)

    def _replica_spec(self, entry: Fields, framework: type[DLJob]) -> ReplicaSpec:
        if "replicas" not in entry:
            raise InvalidJobError("is missing: say how many", field=entry.at("replicas"))
        return ReplicaSpec(
            type=replica_type(entry, TYPE_FIELD, framework),
            replicas=entry.integer("replicas", 1, most=MAX_REPLICAS),
            template=pod_template(entry.value("template"), entry.at("template")),
            port=self.default_port or framework.default_port(),
        )


MPBA_V1 = BareList()
# dl-operator's own MXJob meets on another port than the framework's default, and talks more.
MPBA_V1_MXNET = BareList(default_port=9000, extra_environment={"PS_VERBOSE": "2"})

"""The list form of v1alpha1: ``replicaSpecs`` is a list whose entries name their replica type.

Spoken by tf-operator at first, and by both mx-operators. Defaults are those systems' own.
"""

import enum
from collections.abc import Mapping
from typing import Any

import attrs
import msgspec

from dlctl.api.exitcodes import RetryRule
from dlctl.api.job import CleanPodPolicy, Deciders, Job, JobObject, Replica, ReplicaSpec, RunPolicy
from dlctl.api.meta import Resource
from dlctl.api.status import JobStatus
from dlctl.dialects import list_schema, list_status, run_policy, shared_status
from dlctl.dialects.dialect import JSON, Dialect
from dlctl.dialects.entries import (
    check_singletons,
    check_types,
    pod_template,
    replica_type,
    training_container,
)
from dlctl.dialects.names import PREFIX, check_names, runtime_id
from dlctl.dialects.wire import MAX_REPLICAS, Fields
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.kubeflow.job import KubeflowJob


class JobMode(enum.StrEnum):
    """Whether replicas form a cluster; an absent mode means they do."""

    DIST = "dist"
    LOCAL = "local"


@attrs.frozen
class ReplicaList(Dialect):
    """The list form, as one API group spells it.

    ``tag`` begins the fields that carry the framework's name: ``mx`` in ``mxReplicaType``.
    """

    framework: type[DLJob]
    domain: str
    tag: str
    port_field: str
    default_port: int
    default_type: str
    default_clean: CleanPodPolicy
    retries: RetryRule
    # The kind of Kubeflow's v1 that jobs are stored as, and whose typed clients read them.
    stored_as: type[KubeflowJob] | None = None
    port_name: str = "dljob-port"
    service_per_replica: bool = False
    completes_spec: bool = True
    deletes_jobs: bool = True
    extra_environment: Mapping[str, str] = attrs.field(factory=dict)

    def recognises(self, spec: Any) -> bool:
        return isinstance(spec, Mapping) and any(name.lower() == "replicaspecs" for name in spec)

    def read(self, obj: JobObject, resource: Resource) -> Job:
        fields = Fields(msgspec.json.decode(obj.spec), "spec")
        specs = self._replica_specs(fields)
        local = fields.choice("jobMode", JobMode, JobMode.DIST) is JobMode.LOCAL
        chief = self._chief(fields)
        if local:
            specs, chief = _single_process(specs, fields)
        else:
            check_singletons(specs, self.framework, fields.at("replicaSpecs"))
        given = fields.text("RuntimeId")
        job = Job(
            resource=resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            deciders=Deciders.chief(chief),
            child_prefix=obj.metadata.name[:PREFIX],
            runtime_id=given or runtime_id(obj.metadata.uid),
            status=self.read_status(obj),
            run_policy=self._run_policy(fields),
            local=local,
            scheduler_name=fields.text("schedulerName"),
            spec_patch=None if given else _spec_patch(fields, obj),
        )
        check_names(obj.metadata.name, job.runtime_id, specs, fields.at("RuntimeId"))
        _check_chief(job, chief, fields)
        return job

    def run_policy(self, obj: JobObject) -> RunPolicy:
        return self._run_policy(Fields(msgspec.json.decode(obj.spec), "spec"))

    def read_status(self, obj: JobObject) -> JobStatus:
        if self.stored_as is not None:
            return shared_status.read(obj.status, self.tag)
        return list_status.read(obj.status, self.tag)

    def write_status(self, status: JobStatus) -> JSON:
        if self.stored_as is not None:
            return shared_status.write(status, self.tag, self.stored_as)
        return list_status.write(status, self.tag)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        return {
            self.domain: "",
            "job_type": replica.type.upper(),
            "runtime_id": job.runtime_id,
            f"{self.tag}_job_name": job.key.name,
            "task_index": str(replica.index),
        }

    def status_schema(self) -> JSON:
        return list_schema.of_status(shared=self.stored_as is not None)

    def spec_schema(self) -> JSON:
        return list_schema.of_replica_list(self)

    @property
    def type_field(self) -> str:
        return f"{self.tag}ReplicaType"

    def _run_policy(self, fields: Fields) -> RunPolicy:
        clean = fields.choice("cleanupPodPolicy", CleanPodPolicy, self.default_clean)
        return run_policy.read(fields, clean)

    def _replica_specs(self, fields: Fields) -> tuple[ReplicaSpec, ...]:
        if "replica_specs" in fields:
            raise InvalidJobError("is not a field: write replicaSpecs", field="spec.replica_specs")
        image = fields.text(f"{self.tag}Image")
        specs = tuple(self._replica_spec(entry, image) for entry in fields.items("replicaSpecs"))
        check_types(specs, self.framework, fields.at("replicaSpecs"))
        return specs

    def _replica_spec(self, entry: Fields, image: str) -> ReplicaSpec:
        type_ = replica_type(entry, self.type_field, self.framework, default=self.default_type)
        template = entry.value("template")
        if template is None and image and type_ == "server":
            # Declared by the mx-operators and never built: a server that runs the given image.
            template = _bare_template(self.framework, image)
        template = pod_template(template, entry.at("template"))
        port = entry.port(self.port_field, self.default_port)
        return ReplicaSpec(
            type=type_,
            replicas=entry.integer("replicas", 1, most=MAX_REPLICAS),
            template=template,
            container=training_container(template, self.framework),
            port=port,
            ports={self.port_name: port},
            retries=self.retries,
        )

    def _chief(self, fields: Fields) -> Replica:
        framework = self.framework
        if "terminationPolicy" not in fields:
            return framework.default_chief()
        policy = fields.object("terminationPolicy")
        if "chief" not in policy:
            raise InvalidJobError(
                "is missing: name the replica that decides the job, or leave out terminationPolicy",
                field=policy.at("chief"),
            )
        chief = policy.object("chief")
        type_ = replica_type(
            chief, "replicaName", framework, default=framework.default_chief().type
        )
        return Replica(type_, chief.integer("replicaIndex", 0))


def _single_process(
    specs: tuple[ReplicaSpec, ...], fields: Fields
) -> tuple[tuple[ReplicaSpec, ...], Replica]:
    worker = next((spec for spec in specs if spec.type == "worker"), None)
    if worker is None:
        raise InvalidJobError(
            "is local, which runs one WORKER, and replicaSpecs lists none: add it",
            field=fields.at("jobMode"),
        )
    return (attrs.evolve(worker, replicas=1),), Replica("worker", 0)


def _check_chief(job: Job, chief: Replica, fields: Fields) -> None:
    policy = fields.at("terminationPolicy")
    count = job.count(chief.type)
    if job.spec_of(chief.type) is None:
        raise InvalidJobError(
            f"has no entry of type {chief.type.upper()}, which decides the job: add one, or "
            "name another in terminationPolicy",
            field=fields.at("replicaSpecs"),
        )
    if chief.index >= count:
        raise InvalidJobError(
            f"is {chief.index}, but there are {count} {chief.type.upper()} replicas: "
            "indexes begin at 0",
            field=f"{policy}.chief.replicaIndex",
        )


def _spec_patch(fields: Fields, obj: JobObject) -> Mapping[str, Any]:
    # An empty field that the user spelt otherwise is filled in, and not joined by a second one.
    return {fields.spelling("RuntimeId"): runtime_id(obj.metadata.uid)}


def _bare_template(framework: type[DLJob], image: str) -> Mapping[str, Any]:
    name = framework.container_name()
    container = {"name": name, "image": image, "command": ["python", "-c", f"import {name}"]}
    return {"spec": {"containers": [container], "restartPolicy": "OnFailure"}}


def kubeflow_v1alpha1(framework: type[DLJob], stored_as: type[KubeflowJob]) -> ReplicaList:
    """Return the form of jzp1025's mx-operator."""
    return ReplicaList(
        framework,
        domain="kubeflow.org",
        tag="mx",
        port_field="PsRootPort",
        default_port=9091,
        default_type="WORKER",
        default_clean=CleanPodPolicy.ALL,
        stored_as=stored_as,
        retries=RetryRule.TABLE,
        port_name="ps-root-port",
    )


def tf_operator_v1alpha1(framework: type[DLJob], stored_as: type[KubeflowJob]) -> ReplicaList:
    """Return the form of tf-operator up to its version 0.3."""
    return ReplicaList(
        framework,
        domain="kubeflow.org",
        tag="tf",
        port_field="tfPort",
        default_port=2222,
        default_type="MASTER",
        default_clean=CleanPodPolicy.ALL,
        stored_as=stored_as,
        retries=RetryRule.TABLE_AND_SIGNALS,
        port_name="tf-port",
        service_per_replica=True,
    )


def fioravanzo_v1alpha1(framework: type[DLJob]) -> ReplicaList:
    """Return the form of fioravanzo.org's mx-operator."""
    return ReplicaList(
        framework,
        domain="fioravanzo.org",
        tag="mx",
        port_field="mxPort",
        default_port=9000,
        default_type="SCHEDULER",
        # Pods are kept for their logs.
        default_clean=CleanPodPolicy.NONE,
        retries=RetryRule.TABLE_AND_SIGNALS,
        port_name="mx-port",
        service_per_replica=True,
        extra_environment={"PS_VERBOSE": "2"},
    )

"""TrainingJob, et-operator's kind: a launcher, and workers that come and go while it runs.

Names, labels and defaults are et-operator's, so that its clients find what they look for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.elastic import GROUP, LAUNCHER, SCALE_OUTS, WORKER
from dlctl.api.job import Deciders, Job, JobObject, Replica, ReplicaSpec, RunPolicy
from dlctl.api.meta import Resource
from dlctl.api.reporting import Reporting
from dlctl.api.status import JobStatus
from dlctl.dialects.dialect import JSON, Dialect
from dlctl.dialects.elastic import policies, training_status
from dlctl.dialects.elastic.training_schema import of_spec, of_status, root_rules
from dlctl.dialects.elastic.words import TrainingJobReporting
from dlctl.dialects.entries import pod_template
from dlctl.dialects.names import check_label_names
from dlctl.dialects.wire import MAX_REPLICAS, Fields
from dlctl.errors import InvalidJobError
from dlctl.frameworks.elastic.job import SERVICE_PORTS, TrainingJob

_SPECS: Final = "etReplicaSpecs"
_REPORTING: Final = TrainingJobReporting()
_NAME: Final = "training-job-name"
# Workers are numbered on when others take their places: names must have room for that.
_LAST_INDEX: Final = 999
_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@attrs.frozen
class TrainingJobDialect(Dialect):
    """The one form of TrainingJob."""

    framework: type[TrainingJob] = TrainingJob
    publishes_not_ready: bool = False
    deletes_jobs: bool = True
    requires_spec: bool = False
    undialled = frozenset({LAUNCHER})

    @property
    def columns(self) -> Sequence[tuple[str, str, str, int]]:
        return (
            ("Phase", ".status.phase", "string", 0),
            ("Age", ".metadata.creationTimestamp", "date", 0),
        )

    def recognises(self, spec: Any) -> bool:
        return isinstance(spec, Mapping) and any(name.lower() == _SPECS.lower() for name in spec)

    def read(self, obj: JobObject, resource: Resource) -> Job:
        fields = Fields(msgspec.json.decode(obj.spec), "spec")
        entries = fields.object(_SPECS)
        launcher, worker = _entry(entries, LAUNCHER), _entry(entries, WORKER)
        fields.optional_integer("slotsPerWorker", least=1, most=MAX_REPLICAS)
        name = obj.metadata.name
        annotations = obj.metadata.annotations or {}
        workers = self._workers(worker, name)
        elasticity = policies.elasticity(fields, launcher, worker, workers.replicas)
        last = max(_LAST_INDEX, (elasticity.most or workers.replicas) - 1)
        check_label_names(name, [f"{training_status.prefix(name)}{last}", f"{name}-{LAUNCHER}"])
        status = self.read_status(obj)
        if status.foreign and status.roster:
            # Whatever the number in the spec was when the other operator last looked at it.
            roster = attrs.evolve(status.roster, followed=workers.replicas)
            status = attrs.evolve(status, roster=roster)
        if status.roster:
            workers = attrs.evolve(workers, members=status.roster.members)
        chief = Replica(LAUNCHER, 0)
        return Job(
            resource=resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=(self._launcher(fields, launcher), workers),
            deciders=Deciders((chief,), (chief,), dispensable=frozenset({WORKER})),
            child_prefix=name,
            runtime_id="",
            status=status,
            run_policy=policies.of_run(fields, launcher, annotations),
            reporting=_REPORTING,
            annotations=annotations,
            elasticity=elasticity,
            spec=fields.respelt(slotsPerWorker=fields.value("slotsPerWorker")),
        )

    def run_policy(self, obj: JobObject) -> RunPolicy:
        fields = Fields(msgspec.json.decode(obj.spec), "spec")
        launcher = fields.object(_SPECS).object(LAUNCHER)
        return policies.of_run(fields, launcher, obj.metadata.annotations or {})

    def reporting(self, job: Job) -> Reporting:
        return _REPORTING

    def read_status(self, obj: JobObject) -> JobStatus:
        return training_status.read(obj.status, obj.metadata.name)

    def write_status(self, status: JobStatus) -> JSON:
        return training_status.write(status)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        labels = _labels(job.key.name, replica.type)
        if replica.type == WORKER:
            labels["replica-index"] = str(replica.index)
        return labels

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        scaling = job.status.roster.scaling if job.status.roster else None
        if scaling is None or replica.type != WORKER or replica.index not in scaling.workers:
            return {}
        kind, _, scaler = scaling.scaler.partition(":")
        name = scaler.rpartition("/")[2]
        # A name may be longer than a label's value; the pod matters more.
        named = scaling.adds and kind == SCALE_OUTS.kind and _LABEL.fullmatch(name)
        return {"scaleout-name": name} if named else {}

    @property
    def orphan_selector(self) -> str:
        return f"group-name={GROUP}"

    def spec_schema(self) -> JSON:
        return of_spec()

    def status_schema(self) -> JSON:
        return of_status()

    @property
    def scale(self) -> JSON | None:
        status = ".status.replicaStatuses.Worker"
        return {
            "specReplicasPath": f".spec.{_SPECS}.{WORKER}.replicas",
            "statusReplicasPath": f"{status}.active",
            "labelSelectorPath": f"{status}.selector",
        }

    @property
    def rules(self) -> Sequence[JSON]:
        return root_rules(len(f"-{WORKER}-{_LAST_INDEX}"))

    def _launcher(self, fields: Fields, entry: Fields) -> ReplicaSpec:
        replicas = entry.integer("replicas", 1)
        if replicas != 1:
            raise InvalidJobError(
                f"is {replicas}, but there must be exactly 1 launcher", field=entry.at("replicas")
            )
        template = _template(entry)
        return ReplicaSpec(
            type=LAUNCHER,
            replicas=1,
            template=template,
            container=template["spec"]["containers"][0]["name"],
            port=self.framework.default_port(),
            retries=policies.launcher_retries(fields, entry),
            made_last=True,
            numbered=False,
            outlasts_job=True,
        )

    def _workers(self, entry: Fields, name: str) -> ReplicaSpec:
        template = _template(entry)
        labels = _labels(name, WORKER)
        return ReplicaSpec(
            type=WORKER,
            replicas=entry.integer("replicas", 1, least=1, most=MAX_REPLICAS),
            template=template,
            container=template["spec"]["containers"][0]["name"],
            port=self.framework.default_port(),
            ports=SERVICE_PORTS,
            retries=policies.worker_retries(entry),
            selector=",".join(f"{label}={value}" for label, value in sorted(labels.items())),
        )


def _entry(entries: Fields, type_: str) -> Fields:
    if type_ not in entries:
        raise InvalidJobError(f"is missing: give a spec of the {type_}", field=entries.at(type_))
    return entries.object(type_)


def _template(entry: Fields) -> Mapping[str, Any]:
    """Read a pod template; what is to run again is made again, and never by the kubelet."""
    return pod_template(entry.value("template"), entry.at("template"), restart_policy="Never")


def _labels(name: str, type_: str) -> dict[str, str]:
    return {"group-name": GROUP, _NAME: name, "training-job-role": type_}

"""Kubeflow's form: ``<tag>ReplicaSpecs`` maps replica types to specs, ``runPolicy`` says the rest.

Names, labels and defaults are training-operator's, so that its clients find what they look for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.exitcodes import RetryRule
from dlctl.api.job import (
    Caution,
    CleanPodPolicy,
    Deciders,
    Job,
    JobObject,
    Replica,
    ReplicaSpec,
    RunPolicy,
)
from dlctl.api.meta import Resource
from dlctl.api.reporting import Reporting
from dlctl.api.status import JobStatus
from dlctl.dialects import map_checks, map_rules, map_schema, map_status, own_fields, run_policy
from dlctl.dialects.dialect import JSON, Dialect
from dlctl.dialects.entries import pod_template, training_container
from dlctl.dialects.kubeflow_words import KubeflowReporting
from dlctl.dialects.names import check_label_names
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.dialects.wire import MAX_REPLICAS, Fields, one_of
from dlctl.errors import InvalidJobError
from dlctl.frameworks.kubeflow.job import KubeflowJob

LABELS: Final = "training.kubeflow.org"
OPERATOR: Final = "kubeflow.org/training-operator"
_COLUMNS: Final = (
    ("State", ".status.conditions[-1:].type", "string", 0),
    ("Age", ".metadata.creationTimestamp", "date", 0),
)
EXIT_CODE_POLICY: Final = "dlctl.dev/exit-code-policy"
_OVERWRITTEN: Final = (
    "Restart policy in pod template will be overwritten by restart policy in replica spec"
)


@attrs.frozen
class ReplicaMap(Dialect):
    """The map form of one of Kubeflow's kinds."""

    framework: type[KubeflowJob]
    # Whether the kind is served in another form too, whose jobs are stored under this one's schema.
    shared: bool = False
    publishes_not_ready: bool = False
    environment_wins: bool = True
    deletes_jobs: bool = True

    @property
    def columns(self) -> Sequence[tuple[str, str, str, int]]:
        return _COLUMNS[::-1] if self.framework.age_first else _COLUMNS

    @property
    def has_services(self) -> bool:
        return self.framework.has_services

    @property
    def specs_field(self) -> str:
        return f"{self.framework.tag}ReplicaSpecs"

    def recognises(self, spec: Any) -> bool:
        wanted = self.specs_field.lower()
        return isinstance(spec, Mapping) and any(name.lower() == wanted for name in spec)

    def read(self, obj: JobObject, resource: Resource) -> Job:
        fields = Fields(msgspec.json.decode(obj.spec), "spec")
        specs = self._replica_specs(fields, obj)
        name = obj.metadata.name
        names = [_last_name(name, spec) for spec in specs]
        check_label_names(name, names, dialled=self.has_services)
        job = Job(
            resource=resource,
            key=obj.key,
            uid=obj.metadata.uid,
            generation=obj.metadata.generation or 0,
            replica_specs=specs,
            deciders=Deciders((), ()),
            child_prefix=name,
            runtime_id="",
            status=self.read_status(obj),
            run_policy=_run_policy(fields),
            cautions=tuple(self._cautions(fields)),
            spec=fields.respelt(),
        )
        framework = self.framework(job)
        return attrs.evolve(job, deciders=framework.deciders(), reporting=self.reporting(job))

    def run_policy(self, obj: JobObject) -> RunPolicy:
        return _run_policy(Fields(msgspec.json.decode(obj.spec), "spec"))

    def reporting(self, job: Job) -> Reporting:
        return KubeflowReporting.of(self.framework(job))

    def managed_elsewhere(self, obj: JobObject) -> bool:
        try:
            policy = Fields(msgspec.json.decode(obj.legible), "spec").object("runPolicy")
            return policy.text("managedBy", OPERATOR) != OPERATOR
        except (InvalidJobError, msgspec.DecodeError):
            return False

    def read_status(self, obj: JobObject) -> JobStatus:
        return map_status.read(obj.status, self.framework)

    def write_status(self, status: JobStatus) -> JSON:
        return map_status.write(status, self.framework)

    def labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        labels = self._type_labels(job.key.name, replica.type)
        spec = job.spec_of(replica.type)
        if spec is None or spec.numbered:
            labels[f"{LABELS}/replica-index"] = str(replica.index)
        return labels

    def pod_labels(self, job: Job, replica: Replica) -> Mapping[str, str]:
        master = self.framework(job).is_master(replica)
        return {f"{LABELS}/job-role": "master"} if master else {}

    @property
    def orphan_selector(self) -> str:
        return f"{LABELS}/operator-name={self.framework.controller_name()}"

    def status_schema(self) -> JSON:
        return map_schema.of_status()

    def spec_schema(self) -> JSON:
        return map_schema.of_replica_map(self)

    @property
    def rules(self) -> Sequence[JSON]:
        return [map_rules.of_children(self.specs_field)] if self.has_services else []

    @property
    def scale(self) -> JSON | None:
        if not self.framework.scales:
            return None
        status = ".status.replicaStatuses.Worker"
        return {
            "specReplicasPath": f".spec.{self.specs_field}.Worker.replicas",
            "statusReplicasPath": f"{status}.active",
            "labelSelectorPath": f"{status}.selector",
        }

    def _type_labels(self, name: str, type_: str) -> dict[str, str]:
        return {
            f"{LABELS}/job-name": name,
            f"{LABELS}/operator-name": self.framework.controller_name(),
            f"{LABELS}/replica-type": type_,
        }

    def _replica_specs(self, fields: Fields, obj: JobObject) -> tuple[ReplicaSpec, ...]:
        entries = fields.object(self.specs_field)
        map_checks.check_types(self.framework, fields.value(self.specs_field), entries.path)
        # tf-operator's first draft of this form had one policy for all replicas.
        policy = fields.text("restartPolicy") or self.framework.restart_policy
        specs = [self._replica_spec(entries, name, obj, policy) for name in entries.names()]
        if not specs:
            types = ", ".join(map(self.framework.spelling, self.framework.replica_types))
            raise InvalidJobError(
                f"is missing: give a spec of at least one of {types}",
                field=fields.at(self.specs_field),
            )
        for type_ in self.framework.singletons:
            if not any(spec.type == type_ for spec in specs):
                title = self.framework.spelling(type_)
                raise InvalidJobError(
                    f"lists no {title}, but there must be exactly 1: add it",
                    field=fields.at(self.specs_field),
                )
        own_fields.of(self.framework).check(fields, specs)
        return tuple(sorted(specs, key=lambda s: self.framework.replica_types.index(s.type)))

    def _replica_spec(
        self, entries: Fields, name: str, obj: JobObject, default_policy: str
    ) -> ReplicaSpec:
        framework = self.framework
        type_ = map_checks.replica_type(framework, name, entries.at(name))
        entry = entries.object(name)
        default = framework.default_replicas.get(type_, 1)
        replicas = entry.integer("replicas", default, most=MAX_REPLICAS)
        if type_ in framework.singletons and replicas != 1:
            title = framework.spelling(type_)
            raise InvalidJobError(
                f"is {replicas}, but there must be exactly 1 {title}", field=entry.at("replicas")
            )
        policy = one_of(
            entry.text("restartPolicy") or default_policy,
            RestartPolicy,
            field=entry.at("restartPolicy"),
        )
        template = pod_template(
            entry.value("template"), entry.at("template"), restart_policy=policy.of_pod
        )
        map_checks.check_containers(framework, template, entry.at("template"))
        container = training_container(template, framework)
        template = self._with_port(template, container)
        ports = dict(_ports(template, container))
        return ReplicaSpec(
            type=type_,
            replicas=replicas,
            template=template,
            container=container,
            port=ports.get(framework.port_name, framework.default_port()),
            ports=_once(ports, framework.port_name),
            retries=_retries(policy, obj),
            numbered=type_ not in framework.unnumbered,
            waits_for_others=type_ in framework.waiting,
            selector=self._selector(obj.metadata.name, type_),
        )

    def _cautions(self, fields: Fields) -> Iterator[Caution]:
        entries = fields.object(self.specs_field)
        templates = [entries.object(name).object("template") for name in entries.names()]
        if any(template.object("spec").text("restartPolicy") for template in templates):
            # Misspelt by training-operator for one kind; scripts look for what it writes.
            verb = "Setted" if self.framework.job_type == "MPIJob" else "Set"
            yield Caution(f"{verb}PodTemplateRestartPolicy", _OVERWRITTEN)

    def _with_port(self, template: Mapping[str, Any], container: str) -> Mapping[str, Any]:
        """Add the port where replicas meet to the container that trains, if it has none."""
        name, number = self.framework.port_name, self.framework.default_port()
        ports = dict(_ports(template, container))
        if not self.framework.has_services or name in ports or number in ports.values():
            return template
        port = {"name": name, "containerPort": number}
        containers = [
            {**each, "ports": [*(each.get("ports") or []), port]}
            if each["name"] == container
            else each
            for each in template["spec"]["containers"]
        ]
        return {**template, "spec": {**template["spec"], "containers": containers}}

    def _selector(self, name: str, type_: str) -> str:
        if not self.framework.scales:
            return ""
        labels = self._type_labels(name, type_)
        return ",".join(f"{label}={value}" for label, value in sorted(labels.items()))


def _run_policy(fields: Fields) -> RunPolicy:
    return run_policy.read(fields, CleanPodPolicy.NONE, in_spec=run_policy.ONCE_IN_SPEC)


def _last_name(name: str, spec: ReplicaSpec) -> str:
    index = f"-{max(spec.replicas - 1, 0)}" if spec.numbered else ""
    return f"{name}-{spec.type}{index}"


def _ports(template: Mapping[str, Any], container: str) -> Iterator[tuple[str, int]]:
    """Yield the ports of a container that have names: a service needs one for each of several."""
    for each in template["spec"]["containers"]:
        if each["name"] != container:
            continue
        for port in each.get("ports") or ():
            if port.get("name") and port.get("containerPort"):
                yield port["name"], port["containerPort"]


def _once(ports: Mapping[str, int], preferred: str) -> Mapping[str, int]:
    """Return the ports of a service, which may list each number once: under its preferred name."""
    names = {number: name for name, number in reversed(list(ports.items()))}
    if preferred in ports:
        names[ports[preferred]] = preferred
    return {name: number for name, number in ports.items() if names[number] == name}


def _retries(policy: RestartPolicy, obj: JobObject) -> RetryRule:
    if policy is not RestartPolicy.EXIT_CODE:
        return RetryRule.NONE if policy is RestartPolicy.NEVER else RetryRule.ALL
    wish = (obj.metadata.annotations or {}).get(EXIT_CODE_POLICY, "")
    return RetryRule.SIGNALS if wish == "kubeflow" else RetryRule.TABLE_AND_SIGNALS

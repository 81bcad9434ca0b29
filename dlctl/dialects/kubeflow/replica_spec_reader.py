"""Reads the replica specs of Kubeflow's jobs: counts, restart policies, pod templates and ports."""

from collections.abc import Iterator, Mapping

from dlctl.api.job import ReplicaSpec
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import ObjectMeta
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.dialects.annotations import EXIT_CODE_POLICY_ANNOTATION
from dlctl.dialects.field_reader import MAX_REPLICAS, FieldReader, parse_enum
from dlctl.dialects.kubeflow import replica_validation
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.dialects.pods.pod_templates import read_pod_template, training_container
from dlctl.dialects.restart_policy import RestartPolicy
from dlctl.errors import InvalidJobError
from dlctl.frameworks.pod_changes import append_items


def read_replica_specs(
    kind: KubeflowKind, fields: FieldReader, metadata: ObjectMeta
) -> tuple[ReplicaSpec, ...]:
    """Read the replica specs of a job, in the order of the framework's types.

    :raises InvalidJobError: naming the field and the fix.
    """
    entries = fields.object(kind.replica_specs_field)
    names = fields.value(kind.replica_specs_field)
    replica_validation.check_replica_types(kind, names, entries.path)
    # tf-operator's first draft had one policy for all replicas.
    policy = fields.string("restartPolicy") if kind.schema.has_policies_in_spec else ""
    specs = [_read(kind, entries, name, metadata, policy) for name in entries.names()]
    replica_validation.check_listed_types(kind, specs, entries.path)
    kind.check(fields, specs)
    return tuple(sorted(specs, key=lambda spec: kind.replica_types.index(spec.type)))


def _read(
    kind: KubeflowKind,
    entries: FieldReader,
    name: str,
    metadata: ObjectMeta,
    default_policy: str,
) -> ReplicaSpec:
    type_ = replica_validation.read_replica_type(kind, name, entries.path_of(name))
    entry = entries.object(name)
    replicas = _read_replicas(kind, entry, type_)
    policy = parse_enum(
        entry.string("restartPolicy") or default_policy or kind.replicas.default_policy(type_),
        [policy for policy in RestartPolicy if policy in kind.replicas.restart_policies],
        field=entry.path_of("restartPolicy"),
    )
    template = read_pod_template(
        entry.value("template"),
        entry.path_of("template"),
        restart_policy=policy.pod_restart_policy,
    )
    replica_validation.check_containers(kind, template, entry.path_of("template"))
    container = training_container(template, kind.container_names)
    template = _with_port(kind, _with_metadata(kind, template, entry), container)
    ports = dict(_named_ports(template, container))
    return ReplicaSpec(
        type=type_,
        replicas=replicas,
        template=template,
        container=container,
        port=ports.get(kind.port_name, kind.framework.default_port()),
        ports=_unique_ports(ports, kind.port_name),
        retry_policy=_retry_policy(policy, metadata),
        indexed=type_ not in kind.replicas.unindexed_types,
        gated=type_ in kind.replicas.gated_types,
        label_selector=_label_selector(kind, metadata.name, type_),
    )


def _read_replicas(kind: KubeflowKind, entry: FieldReader, type_: str) -> int:
    default = kind.replicas.default_counts.get(type_, 1)
    replicas = entry.integer("replicas", default, maximum=MAX_REPLICAS)
    if type_ in kind.framework.singletons and replicas != 1:
        message = f"is {replicas}, but there must be exactly 1 {kind.type_name(type_)}"
        raise InvalidJobError(message, field=entry.path_of("replicas"))
    return replicas


def _with_metadata(kind: KubeflowKind, template: ReadOnlyJSON, entry: FieldReader) -> ReadOnlyJSON:
    """Add the annotations that were once fields of the replica spec, and drop finalizers."""
    metadata = dict(template.get("metadata") or {})
    if not kind.copies_finalizers:
        metadata.pop("finalizers", None)
    given = {
        annotation: value
        for field, annotation in kind.annotation_by_field.items()
        if (value := entry.string(field))
    }
    if given:
        metadata["annotations"] = {**given, **(metadata.get("annotations") or {})}
    return {**template, "metadata": metadata}


def _with_port(kind: KubeflowKind, template: ReadOnlyJSON, container: str) -> ReadOnlyJSON:
    """Add the framework's port to the training container, unless it has it."""
    name, number = kind.port_name, kind.framework.default_port()
    ports = dict(_named_ports(template, container))
    if not kind.has_services or name in ports or number in ports.values():
        return template
    port = {"name": name, "containerPort": number}
    containers = [
        append_items(each, ports=[port]) if each["name"] == container else each
        for each in template["spec"]["containers"]
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}


def _named_ports(template: ReadOnlyJSON, container: str) -> Iterator[tuple[str, int]]:
    """Yield the named ports of a container: in a service with several, each needs a name."""
    for each in template["spec"]["containers"]:
        if each["name"] != container:
            continue
        for port in each.get("ports") or ():
            if port.get("name") and port.get("containerPort"):
                yield port["name"], port["containerPort"]


def _unique_ports(ports: Mapping[str, int], preferred: str) -> Mapping[str, int]:
    """Return the ports of a service, each number once under its preferred name."""
    names = {number: name for name, number in reversed(list(ports.items()))}
    if preferred in ports:
        names[ports[preferred]] = preferred
    return {name: number for name, number in ports.items() if names[number] == name}


def _retry_policy(policy: RestartPolicy, metadata: ObjectMeta) -> RetryPolicy:
    if policy is not RestartPolicy.EXIT_CODE:
        return RetryPolicy.NONE if policy is RestartPolicy.NEVER else RetryPolicy.ALL
    annotation = metadata.annotation(EXIT_CODE_POLICY_ANNOTATION)
    return RetryPolicy.SIGNALS if annotation == "kubeflow" else RetryPolicy.TABLE_AND_SIGNALS


def _label_selector(kind: KubeflowKind, job: str, type_: str) -> str:
    if not kind.is_scalable:
        return ""
    labels = kind.type_labels(job, type_)
    return ",".join(f"{label}={value}" for label, value in sorted(labels.items()))

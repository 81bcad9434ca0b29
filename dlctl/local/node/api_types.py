"""The projections that the node reads: far more of a pod than the controller needs.

Never written back. Fields that a node of plain processes cannot honour, such as most of security
contexts, are omitted on purpose.
"""

from typing import Any

import msgspec

from dlctl.api.meta import Object, ObjectMeta, Projection
from dlctl.api.objects.pods import PodSchedulingGate
from dlctl.local.node.handler_types import ContainerPort, Lifecycle, Probe

DEFAULT_GRACE_S = 30
_HOSTNAME_LIMIT = 63


class KeySelector(Projection, frozen=True, gc=False):
    """One key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class LocalObjectReference(Projection, frozen=True, gc=False):
    """A whole ConfigMap or Secret."""

    name: str = ""
    optional: bool | None = None


class ObjectFieldSelector(Projection, frozen=True, gc=False):
    """A field of the pod itself, such as ``metadata.name``."""

    field_path: str = ""


class ResourceFieldSelector(Projection, frozen=True, gc=False):
    """A resource limit or request of a container, such as ``limits.cpu``."""

    resource: str = ""
    container_name: str = ""
    divisor: Any = None


class EnvVarSource(Projection, frozen=True, gc=False):
    """The source of a variable's value; exactly one field is set."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None


class EnvVar(Projection, frozen=True, gc=False):
    """A variable, by value or by reference."""

    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None


class EnvFromSource(Projection, frozen=True, gc=False):
    """All keys of a ConfigMap or Secret as variables."""

    prefix: str | None = None
    config_map_ref: LocalObjectReference | None = None
    secret_ref: LocalObjectReference | None = None


class VolumeMount(Projection, frozen=True, gc=False):
    """The path at which a container mounts a volume."""

    name: str
    mount_path: str
    sub_path: str | None = None
    # Expanded with the variables of the container.
    sub_path_expr: str | None = None
    read_only: bool | None = None


class ResourceRequirements(Projection, frozen=True, gc=False):
    """The requests of a container, and its limits."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class SecurityContext(Projection, frozen=True, gc=False):
    """Whose processes the image expects; here they are those of the user who runs dlctl."""

    run_as_user: int | None = None


class Container(Projection, frozen=True, gc=False):
    """One container of a pod."""

    name: str
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    working_dir: str | None = None
    env: list[EnvVar] | None = None
    env_from: list[EnvFromSource] | None = None
    volume_mounts: list[VolumeMount] | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements | None = None
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    security_context: SecurityContext | None = None

    @property
    def is_sidecar(self) -> bool:
        """Return whether this init container runs beside the containers of the pod."""
        return self.restart_policy == "Always"


class KeyToPath(Projection, frozen=True, gc=False):
    """The file that a key is written to."""

    key: str
    path: str
    mode: int | None = None


class DownwardAPIVolumeFile(Projection, frozen=True, gc=False):
    """The file that a field of the pod is written to."""

    path: str
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class FileVolumeSource(Projection, frozen=True, gc=False):
    """A ConfigMap, a Secret or the pod itself as files; the field that holds it decides which."""

    name: str | None = None
    secret_name: str | None = None
    optional: bool | None = None
    default_mode: int | None = None
    items: list[dict[str, Any]] | None = None


class VolumeProjection(Projection, frozen=True, gc=False):
    """One of several sources that share a volume."""

    config_map: FileVolumeSource | None = None
    secret: FileVolumeSource | None = None
    downward_api: FileVolumeSource | None = msgspec.field(default=None, name="downwardAPI")


class ProjectedVolumeSource(Projection, frozen=True, gc=False):
    """Several sources in one directory."""

    sources: list[VolumeProjection] | None = None
    default_mode: int | None = None


class HostPathVolumeSource(Projection, frozen=True, gc=False):
    """A path of this machine."""

    path: str
    type: str | None = None


class PersistentVolumeClaimVolumeSource(Projection, frozen=True, gc=False):
    """A persistent volume claim, by name."""

    claim_name: str
    read_only: bool | None = None


class Volume(Projection, frozen=True, gc=False):
    """A directory that containers of the pod may mount."""

    name: str
    empty_dir: dict[str, Any] | None = None
    config_map: FileVolumeSource | None = None
    secret: FileVolumeSource | None = None
    downward_api: FileVolumeSource | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class NodeSelectorRequirement(Projection, frozen=True, gc=False):
    """A condition on one label or field of a node."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Projection, frozen=True, gc=False):
    """Conditions that a node has to meet together."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Projection, frozen=True, gc=False):
    """Terms of which a node has to meet one."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Projection, frozen=True, gc=False):
    """The nodes that a pod needs; preferences make no difference with one node."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Projection, frozen=True, gc=False):
    """Where a pod may run; other pods make no difference with one node."""

    node_affinity: NodeAffinity | None = None


class PodDNSConfig(Projection, frozen=True, gc=False):
    """How a pod looks up names, beside what is the same for all."""

    searches: list[str] | None = None


class HostAlias(Projection, frozen=True, gc=False):
    """Names of an address, only in this pod."""

    ip: str
    hostnames: list[str] | None = None


class NodePodSpec(Projection, frozen=True, gc=False):
    """The supported part of a pod's spec."""

    containers: list[Container]
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    restart_policy: str | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    hostname: str | None = None
    subdomain: str | None = None
    host_network: bool | None = None
    host_aliases: list[HostAlias] | None = None
    dns_config: PodDNSConfig | None = None
    service_account_name: str | None = None
    automount_service_account_token: bool | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    security_context: SecurityContext | None = None

    @property
    def all_containers(self) -> list[Container]:
        return [*(self.init_containers or ()), *self.containers]

    def run_as_user(self, container: Container) -> int:
        """Return the user ID of a container; 0 if it is left to the image."""
        contexts = (container.security_context, self.security_context)
        given = (context.run_as_user for context in contexts if context)
        return next((user for user in given if user is not None), 0)


class NodePodMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with the grace period of a deletion."""

    deletion_grace_period_seconds: int | None = None


class NodePod(Object, frozen=True, gc=False, kw_only=True):
    """The fields of a pod that the node needs."""

    metadata: NodePodMeta = NodePodMeta()
    spec: NodePodSpec
    status: dict[str, Any] | None = None

    @property
    def finished(self) -> bool:
        return (self.status or {}).get("phase") in ("Succeeded", "Failed")

    @property
    def hostname(self) -> str:
        # Shortened as by kubelets: Linux takes no more than 64 bytes.
        return (self.spec.hostname or self.metadata.name)[:_HOSTNAME_LIMIT].rstrip("-.")

    @property
    def has_readiness_probe(self) -> bool:
        return any(container.readiness_probe for container in self.spec.containers)

    @property
    def grace_s(self) -> float:
        """Return the seconds between SIGTERM and SIGKILL; a deletion's own grace period wins."""
        for seconds in (
            self.metadata.deletion_grace_period_seconds,
            self.spec.termination_grace_period_seconds,
        ):
            if seconds is not None:
                return float(seconds)
        return float(DEFAULT_GRACE_S)


class NodeServiceSpec(Projection, frozen=True, gc=False):
    """The pods that a service name stands for."""

    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    selector: dict[str, str] | None = None
    publish_not_ready_addresses: bool | None = None


class NodeService(Object, frozen=True, gc=False):
    """The fields of a service that name resolution needs."""

    spec: NodeServiceSpec = NodeServiceSpec()


class ConfigMap(Object, frozen=True, gc=False):
    """A ConfigMap's content."""

    data: dict[str, str] | None = None
    binary_data: dict[str, bytes] | None = None


class Secret(Object, frozen=True, gc=False):
    """A Secret's content, decoded from base64."""

    data: dict[str, bytes] | None = None


class ServiceAccount(Object, frozen=True, gc=False):
    """The identity of a pod towards the API server."""

    automount_service_account_token: bool | None = None

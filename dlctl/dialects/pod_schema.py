"""The schema of a pod template, generated from the tables of its types.

Typed clients such as Kueue list whole kinds at once: one stored field that they cannot decode hides
all jobs of its kind from them. So each field that has a type in core/v1 has it here, too. Values
are left to the API server, which judges the pods.
"""

from functools import cache
from typing import Any, Final

from dlctl.api.core_types import Field, pod_types
from dlctl.api.quantities import MAX_CHARS, PATTERN
from dlctl.dialects.pod_values import TIME
from dlctl.dialects.wire import MAX_PORT

JSON = dict[str, Any]

TEMPLATE: Final = "PodTemplateSpec"
_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_SCALARS: Final[dict[str, JSON]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    # Larger numbers are none to the server's JSON.
    "int64": {"type": "integer"},
    # In pods it is always a port.
    "intstr": {"x-kubernetes-int-or-string": True, "minimum": 0, "maximum": MAX_PORT},
    "quantity": {"x-kubernetes-int-or-string": True, "maxLength": MAX_CHARS, "pattern": PATTERN},
    "time": {"type": "string", "format": "date-time", "pattern": TIME},
    "any": _OPEN,
}
# No pod is created with any, so a template needs none: their types would cost a fifth of the size.
_NONE: Final[JSON] = {
    "type": "array",
    "maxItems": 0,
    "items": {"type": "object", **_OPEN},
}
# Types that get no new fields. Left open they would cost more than there is room for in a kind that
# is served in five versions.
_RARE: Final = frozenset(
    """
    AppArmorProfile AWSElasticBlockStoreVolumeSource AzureDiskVolumeSource AzureFileVolumeSource
    CephFSVolumeSource CinderVolumeSource ContainerResizePolicy DownwardAPIProjection
    EphemeralVolumeSource FCVolumeSource FlexVolumeSource FlockerVolumeSource
    GCEPersistentDiskVolumeSource GitRepoVolumeSource GlusterfsVolumeSource GRPCAction
    ISCSIVolumeSource LabelSelector LabelSelectorRequirement ManagedFieldsEntry OwnerReference
    PersistentVolumeClaimTemplate PhotonPersistentDiskVolumeSource PodAffinity PodAntiAffinity
    PodDNSConfig PodDNSConfigOption PodOS PodReadinessGate PodSchedulingGate PortworxVolumeSource
    PreferredSchedulingTerm QuobyteVolumeSource RBDVolumeSource ScaleIOVolumeSource SeccompProfile
    SecretProjection SELinuxOptions SleepAction StorageOSVolumeSource Sysctl
    TypedLocalObjectReference TypedObjectReference VolumeDevice VsphereVirtualDiskVolumeSource
    WeightedPodAffinityTerm WindowsSecurityContextOptions
    """.split()
)
# Those among them that the systems had which read fields in any case.
_COMMON: Final = frozenset(
    """
    Affinity Capabilities ConfigMapEnvSource ConfigMapKeySelector ConfigMapProjection
    ConfigMapVolumeSource ContainerPort DownwardAPIVolumeFile DownwardAPIVolumeSource
    EmptyDirVolumeSource ExecAction HostAlias HostPathVolumeSource HTTPGetAction HTTPHeader
    KeyToPath LocalObjectReference NFSVolumeSource NodeAffinity NodeSelector NodeSelectorRequirement
    NodeSelectorTerm ObjectFieldSelector PersistentVolumeClaimVolumeSource ResourceFieldSelector
    SecretEnvSource SecretKeySelector SecretVolumeSource TCPSocketAction Toleration
    """.split()
)


def pod_template(*, any_case: bool = False) -> JSON:
    """Return the schema of a pod template, without descriptions but its own.

    Fields that it does not list are kept where new ones may come; with ``any_case`` also where it
    is only their case that may differ.
    """
    template = _struct(TEMPLATE, _RARE if any_case else _RARE | _COMMON)
    return {"type": "object", "description": "A pod template, as in core/v1.", **template}


def of_type(name: str) -> JSON:
    """Return the schema of another type that jobs hold, such as MetricSpec."""
    return _struct(name, _RARE | _COMMON)


@cache
def _struct(name: str, settled: frozenset[str]) -> JSON:
    fields = pod_types()[name].fields.values()
    return {
        "type": "object",
        **({} if name in settled else _OPEN),
        "properties": {field.name: _field(field, field.shape, settled) for field in fields},
    }


def _field(field: Field, shape: tuple[str, ...], settled: frozenset[str]) -> JSON:
    if field.type == "EphemeralContainer":
        return _NONE
    if not shape:
        return _SCALARS.get(field.type) or _struct(field.type, settled)
    inner = _field(field, shape[1:], settled)
    if shape[0] == "[]":
        return {"type": "array", "items": inner}
    if field.type == "str":
        # Without a value it is the empty one: a node selector without it would fit other nodes.
        inner = {**inner, "nullable": True}
    return {"type": "object", "additionalProperties": inner}

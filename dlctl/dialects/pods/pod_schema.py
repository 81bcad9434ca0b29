"""The schema of pod templates, generated from the tables of core/v1.

Typed clients such as Kueue list whole kinds: one stored field that they cannot decode hides all
jobs of its kind from them. So each field has the type that it has in core/v1. Values are left to
the API server, which validates the pods.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from dlctl.api.core_types.type_tables import Field, pod_types
from dlctl.api.json_types import JSON
from dlctl.api.quantities import MAX_CHARS, PATTERN
from dlctl.dialects.field_reader import MAX_PORT
from dlctl.dialects.value_formats import TIME_SCHEMA

POD_TEMPLATE_TYPE: Final = "PodTemplateSpec"
PRESERVE_UNKNOWN: Final = {"x-kubernetes-preserve-unknown-fields": True}
_SCHEMA_BY_SCALAR: Final[dict[str, JSON]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    # The server's JSON decoder rejects larger numbers.
    "int64": {"type": "integer"},
    # In pods it always is a port.
    "intstr": {"x-kubernetes-int-or-string": True, "minimum": 0, "maximum": MAX_PORT},
    "quantity": {"x-kubernetes-int-or-string": True, "maxLength": MAX_CHARS, "pattern": PATTERN},
    "time": TIME_SCHEMA,
    "any": PRESERVE_UNKNOWN,
}
# Pods are created without them, so templates need none; their types would add a fifth to the size.
_EMPTY_LIST: Final[JSON] = {"type": "array", "maxItems": 0, "items": {"type": "object"}}
# The template of a claim may have labels and annotations: a pod with more is refused.
_CLAIM_TEMPLATE_TYPE: Final = "PersistentVolumeClaimTemplate"
_EMPTY_IN_CLAIMS: Final = ("managedFields", "ownerReferences")
# Types that get no new fields. Preserving unknown ones there would exceed the size limit of a kind
# that is served in five versions.
_CLOSED_TYPES: Final = frozenset(
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
# The types among them that existed when systems still read field names case-insensitively.
_CLOSED_IF_CASE_SENSITIVE: Final = frozenset(
    """
    Affinity Capabilities ConfigMapEnvSource ConfigMapKeySelector ConfigMapProjection
    ConfigMapVolumeSource ContainerPort DownwardAPIVolumeFile DownwardAPIVolumeSource
    EmptyDirVolumeSource ExecAction HostAlias HostPathVolumeSource HTTPGetAction HTTPHeader
    KeyToPath LocalObjectReference NFSVolumeSource NodeAffinity NodeSelector NodeSelectorRequirement
    NodeSelectorTerm ObjectFieldSelector PersistentVolumeClaimVolumeSource ResourceFieldSelector
    SecretEnvSource SecretKeySelector SecretVolumeSource TCPSocketAction Toleration
    """.split()
)

# The types whose required fields have to be in templates: what people write by hand. With those of
# all types, a kind that is served in five versions would exceed the size limit.
_COMPLETE_TYPES: Final = frozenset(
    ("Container", "ContainerPort", "EnvVar", "Volume", "VolumeMount")
)
# Where users write fields of other types. Preserving them in more would exceed the size limit.
_OPEN_IN_FORMER_VERSIONS: Final = frozenset(
    {POD_TEMPLATE_TYPE, "PodSpec", "Container", "SecurityContext"}
)


def pod_template_schema(
    *, case_insensitive: bool = False, is_current: bool = True, with_required: bool = False
) -> JSON:
    """Return the schema of a pod template, without descriptions of its fields.

    Unknown fields are preserved in types that may get new ones, unless the schema is for a former
    version of a kind, whose users need none; if ``case_insensitive``, also in those where only the
    case may differ. ``with_required``, most of what core/v1 requires has to be there.
    """
    closed = _CLOSED_TYPES if case_insensitive else _CLOSED_TYPES | _CLOSED_IF_CASE_SENSITIVE
    if not is_current:
        closed = frozenset(pod_types()) - _OPEN_IN_FORMER_VERSIONS
    complete = _COMPLETE_TYPES if with_required else frozenset()
    template = _struct(POD_TEMPLATE_TYPE, closed, complete)
    return {"type": "object", "description": "A pod template, as in core/v1.", **template}


def type_schema(name: str, *, with_required: bool = False) -> JSON:
    """Return the schema of another type in jobs, such as MetricSpec."""
    closed = _CLOSED_TYPES | _CLOSED_IF_CASE_SENSITIVE
    return _struct(name, closed, frozenset(pod_types()) if with_required else frozenset())


@cache
def _struct(name: str, closed_types: frozenset[str], complete_types: frozenset[str]) -> JSON:
    fields = pod_types()[name].fields.values()

    def nested(type_: str) -> JSON:
        return _struct(type_, closed_types, complete_types)

    properties = {field.name: _field(field, field.shape, nested) for field in fields}
    required = [field.name for field in fields if field.required and name in complete_types]
    if name == _CLAIM_TEMPLATE_TYPE:
        metadata = properties["metadata"]
        emptied = {**metadata["properties"], **dict.fromkeys(_EMPTY_IN_CLAIMS, _EMPTY_LIST)}
        properties["metadata"] = {**metadata, "properties": emptied}
    return {
        "type": "object",
        **({} if name in closed_types else PRESERVE_UNKNOWN),
        **({"required": required} if required else {}),
        "properties": properties,
    }


def _field(field: Field, shape: tuple[str, ...], nested: Callable[[str], JSON]) -> JSON:
    if field.type == "EphemeralContainer":
        return _EMPTY_LIST
    if not shape:
        return _SCHEMA_BY_SCALAR.get(field.type) or nested(field.type)
    inner = _field(field, shape[1:], nested)
    if shape[0] == "[]":
        return {"type": "array", "items": inner}
    if field.type == "str":
        # Null is kept as an empty value: without the key, a node selector would match other nodes.
        inner = {**inner, "nullable": True}
    return {"type": "object", "additionalProperties": inner}

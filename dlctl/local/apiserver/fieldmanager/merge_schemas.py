"""How values of a type merge: maps by field, lists by keys or as sets, everything else whole.

Built-in kinds come from the tables of their fields, custom ones from their own schemas.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import attrs

from dlctl.api.core_types.type_tables import Field
from dlctl.api.json_types import JSON
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization.builtin_types import ANY_JSON, kinds

Shape = Literal["leaf", "map", "list", "open"]


@attrs.frozen(eq=False, slots=False)
class MergeSchema:
    """One type. Scalars and atomic values are leaves; "open" depends on the value."""

    shape: Shape = "leaf"
    # The type of a leaf: "string", "numeric" or "boolean"; empty if it may be anything.
    scalar: str = ""
    # The fields that identify an item of a list; none for a set.
    keys: tuple[str, ...] = ()
    _fields: Callable[[], Mapping[str, "MergeSchema"]] = dict
    # The schema of the items of a list, or of the fields of a map that it does not declare.
    _element: Callable[[], "MergeSchema | None"] = lambda: None
    default: Any = None

    @cached_property
    def fields(self) -> Mapping[str, "MergeSchema"]:
        return self._fields()

    @cached_property
    def element(self) -> "MergeSchema | None":
        return self._element()

    def field(self, name: str) -> "MergeSchema | None":
        """Return the type of a field; None if it is unknown."""
        return self.fields.get(name) or self.element

    def of(self, value: Any) -> "MergeSchema":
        """Return the type as a value shows it."""
        if self.shape != "open":
            return self
        return OPEN_MAP if isinstance(value, dict) else LEAF


LEAF: Final = MergeSchema()
OPEN: Final = MergeSchema("open")
OPEN_MAP: Final = MergeSchema("map", element=lambda: OPEN)

_SCALARS: Final = {
    "str": "string",
    "time": "string",
    "microtime": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "float": "numeric",
}
# Types and maps that are replaced as a whole.
_ATOMIC: Final = frozenset(
    {
        "ConfigMapKeySelector",
        "EndpointAddress",
        "EndpointPort",
        "FileKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "OwnerReference",
        "PodSpec.nodeSelector",
        "ResourceFieldSelector",
        "RoleRef",
        "SecretKeySelector",
        "ServiceSpec.selector",
        "Subject",
        "TypedLocalObjectReference",
    }
)
# Lists whose keys are others than the merge key of strategic merge patches; none for a set.
_LIST_KEYS: Final[Mapping[str, tuple[str, ...] | None]] = {
    "Container.ports": ("containerPort", "protocol"),
    "ContainerRestartRuleOnExitCodes.values": (),
    "ContainerStatus.allocatedResourcesStatus": ("name",),
    "ContainerStatus.volumeMounts": ("mountPath",),
    "CustomResourceDefinitionStatus.conditions": ("type",),
    "EphemeralContainer.ports": ("containerPort", "protocol"),
    "JSONSchemaProps.x-kubernetes-validations": ("rule",),
    "NodeAllocatableResourceClaimStatus.containers": (),
    "PodSpec.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "PodFailurePolicyOnExitCodesRequirement.values": (),
    # Atomic.
    "JobStatus.conditions": None,
    "PodStatus.hostIPs": None,
    "ResourceRequirements.claims": ("name",),
    "ResourceStatus.resources": ("resourceID",),
    "ServiceSpec.ports": ("port", "protocol"),
    "UncountedTerminatedPods.failed": (),
    "UncountedTerminatedPods.succeeded": (),
}
_DEFAULTS: Final = {"ContainerPort.protocol": "TCP", "ServicePort.protocol": "TCP"}


@lru_cache
def builtin_schema(kind: str) -> MergeSchema:
    """Return how objects of a built-in type merge."""
    if kind in _ATOMIC:
        return LEAF
    return MergeSchema(
        "map",
        fields=lambda: {
            name: _field_schema(f"{kind}.{name}", field, field.shape)
            for name, field in kinds()[kind].fields.items()
        },
    )


def _field_schema(name: str, field: Field, shape: tuple[str, ...]) -> MergeSchema:
    if name in _ATOMIC:
        return LEAF
    if shape[:1] == ("{}",):
        return MergeSchema("map", element=lambda: _field_schema("", field, shape[1:]))
    if shape:
        keys = _LIST_KEYS[name] if name in _LIST_KEYS else _merge_keys(field)
        if keys is None:
            return LEAF
        return MergeSchema("list", keys=keys, element=lambda: _field_schema("", field, shape[1:]))
    if field.type in kinds():
        return builtin_schema(field.type)
    if field.type in ANY_JSON:
        return OPEN
    return MergeSchema(scalar=_SCALARS.get(field.type, ""), default=_DEFAULTS.get(name))


def _merge_keys(field: Field) -> tuple[str, ...] | None:
    if field.merge_key is None:
        return None
    return (field.merge_key,) if field.merge_key else ()


def custom_schema(schema: JSON) -> MergeSchema:
    """Return how objects of a custom kind merge."""
    inner = _from_json_schema(schema)
    head = {
        "apiVersion": MergeSchema(scalar="string"),
        "kind": MergeSchema(scalar="string"),
        "metadata": builtin_schema("ObjectMeta"),
    }
    return MergeSchema(
        "map", fields=lambda: {**inner.fields, **head}, element=lambda: inner.element
    )


def _from_json_schema(schema: JSON) -> MergeSchema:
    default = schema.get("default")
    match schema.get("type"):
        case "array":
            keys = _list_keys(schema)
            if keys is None:
                return MergeSchema(default=default)
            return MergeSchema(
                "list",
                keys=keys,
                element=lambda: _from_json_schema(schema["items"]),
                default=default,
            )
        case "object" if schema.get("x-kubernetes-map-type") != "atomic":
            return MergeSchema(
                "map",
                fields=lambda: {
                    name: _from_json_schema(each)
                    for name, each in schema.get("properties", {}).items()
                },
                element=lambda: _additional(schema),
                default=default,
            )
        case "string" | "boolean" as kind:
            return MergeSchema(scalar=kind, default=default)
        case "integer" | "number":
            return MergeSchema(scalar="numeric", default=default)
        case _:
            # Also integers or strings, and maps that are replaced as a whole.
            return OPEN if schema.get("x-kubernetes-preserve-unknown-fields") else LEAF


def _list_keys(schema: JSON) -> tuple[str, ...] | None:
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return tuple(schema.get("x-kubernetes-list-map-keys", ()))
        case "set":
            return ()
        case _:
            return None


def _additional(schema: JSON) -> MergeSchema | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return _from_json_schema(extra)
    return OPEN if extra or schema.get("x-kubernetes-preserve-unknown-fields") else None


class MergeSchemas:
    """How the objects of all resources merge; those of custom ones are kept until they change."""

    def __init__(self) -> None:
        # By path, each with the schema that it was made from.
        self._custom: dict[str, tuple[JSON, MergeSchema]] = {}

    def __getitem__(self, served: ServedResource) -> MergeSchema:
        kind, path, schema = served.resource.kind, served.resource.path(), served.openapi
        if schema is None:
            return builtin_schema(kind) if kind in kinds() else OPEN_MAP
        known = self._custom.get(path)
        if known is None or known[0] is not schema:
            known = self._custom[path] = schema, custom_schema(schema)
        return known[1]

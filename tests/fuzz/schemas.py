"""Strategies from structural schemas: small valid values with significant strings.

Open parts of a schema are filled with what users write there, if known.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from tests.fuzz.templates import POD_TEMPLATE

Draw = Any

# Strings matter where decisions depend on them.
_VALUES_BY_FIELD: Final[Mapping[str, Sequence[str]]] = {
    "name": ("a", "b", "master", "x" * 63),
    "image": ("x", "y:1"),
    "mountPath": ("/data", "relative"),
    "fieldPath": ("metadata.name", "spec.x"),
    "script": ("/scale.sh", "/proc/self/environ", ""),
    "type": ("Running", "Failed", "Succeeded", "Waiting", "Created", "Suspended"),
    "status": ("True", "False", "Unknown", ""),
    "phase": ("", "Creating", "Running", "CleanUp", "Done", "Failed", "Suspended", "Restarting"),
    "state": ("", "Running", "Failed", "Succeeded"),
    "finalizers": ("dlctl.dev/x", "x"),
    "RuntimeId": ("abcd", ""),
    "jobMode": ("MXTrain", "MXTune"),
    "managedBy": ("kubeflow.org/training-operator",),
    "restartPolicy": ("ExitCode", "Always", "OnFailure", "Never"),
    "cleanPodPolicy": ("Running", "All", "None"),
}
_TIMES: Final = ("2026-01-01T12:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
_QUANTITIES: Final = (1, "1", "500m", "1Gi", "0", "1e3")
_COUNTS: Final = (1, 2, 3, 8, 100)
_RESOURCES: Final = ("cpu", "memory", "nvidia.com/gpu", "pods", "")


@attrs.frozen(kw_only=True)
class Vocabulary:
    """Values for the strings of one kind's objects."""

    replica_types: Sequence[str]
    # Required types, and singletons.
    required_types: Sequence[str]
    singleton_types: Sequence[str]
    # The container that trains.
    container: str

    def strings_for(self, field: str) -> Sequence[str]:
        if field in ("replicaName", "chief"):
            return self.replica_types
        return _VALUES_BY_FIELD.get(field, ("a", "", "b" * 64))

    def keys_for(self, field: str) -> Sequence[str]:
        if field in ("replicaStatuses", "restarts"):
            return self.replica_types
        if field in ("limits", "requests", "minResources"):
            return _RESOURCES
        return ("a", "b", "app.kubernetes.io/managed-by", "")


@st.composite
def valid_values(draw: Draw, schema: JSON, words: Vocabulary) -> Any:
    """Draw a value that is valid except for CEL rules and some bounds."""
    return Drawing(draw, words).value(schema, "")


@attrs.define
class Drawing:
    """The construction of one value."""

    draw: Draw
    vocabulary: Vocabulary

    def value(self, schema: JSON, field: str) -> Any:
        if field == "template":
            schema = _merge_schemas(schema, POD_TEMPLATE)
        if "enum" in schema:
            return self._one_of(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self._one_of(_QUANTITIES)
        match schema.get("type"):
            case "object":
                return self._object(schema, field)
            case "array":
                return self._array(schema, field)
            case "string":
                return self._one_of(_strings(schema, field, self.vocabulary))
            case "boolean":
                return self._one_of((False, True))
            case "integer" | "number":
                return self._one_of(_numbers(schema))
            case _:
                return None

    def _object(self, schema: JSON, field: str) -> JSON:
        properties = schema.get("properties", {})
        needed = {name for name in properties if name.endswith("ReplicaSpecs")}
        needed |= {*schema.get("required", ()), "replicaSpecs", "template", "chief"}
        # A draw for each would cost more than everything else.
        bits = self._number(0, 2 ** len(properties) - 1)
        found = {
            name: self.value(each, name)
            for place, (name, each) in enumerate(properties.items())
            if name in needed or bits >> place & 1
        }
        if {"count", "podNames"} <= found.keys():
            # The workers of a scale request: either.
            del found[self._one_of(("count", "podNames"))]
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            if field.endswith("ReplicaSpecs"):
                return {type_: self._replicas(extra, type_) for type_ in self._types()}
            found |= {
                key: self.value(extra, key) for key in self._some(self.vocabulary.keys_for(field))
            }
        return found

    def _array(self, schema: JSON, field: str) -> list[Any]:
        item = schema["items"]
        type_field = next((n for n in item.get("properties", {}) if n.endswith("eplicaType")), "")
        if type_field:
            return [self._replicas(item, t) | {type_field: t} for t in self._types()]
        least = schema.get("minItems", 0)
        items = [self.value(item, field) for _ in range(self._number(least, least + 2))]
        if field == "containers" and items:
            items[0]["name"] = self.vocabulary.container
        return items

    def _replicas(self, schema: JSON, type_: str) -> JSON:
        spec = self._object(schema, type_)
        return spec | ({"replicas": 1} if type_ in self.vocabulary.singleton_types else {})

    def _types(self) -> Sequence[str]:
        words = self.vocabulary
        others = [type_ for type_ in words.replica_types if type_ not in words.required_types]
        return [*words.required_types, *self._some(others)]

    def _some(self, options: Sequence[str]) -> list[str]:
        bits = self._number(0, 2 ** len(options) - 1)
        return [option for place, option in enumerate(options) if bits >> place & 1]

    def _one_of(self, options: Sequence[Any]) -> Any:
        return options[self._number(0, len(options) - 1)]

    def _number(self, least: int, most: int) -> int:
        return int(self.draw(st.integers(least, most)))


def _merge_schemas(schema: JSON, known: JSON) -> JSON:
    """Return a schema with its open parts filled in."""
    both = known | schema
    if "properties" in known:
        own = schema.get("properties", {})
        both["properties"] = {
            name: _merge_schemas(own.get(name, {}), known["properties"].get(name, {}))
            for name in {**known["properties"], **own}
        }
    for below in ("items", "additionalProperties"):
        if isinstance(known.get(below), dict):
            both[below] = _merge_schemas(schema.get(below, {}), known[below])
    both["required"] = [*known.get("required", ()), *schema.get("required", ())]
    return both


def _strings(schema: JSON, field: str, words: Vocabulary) -> Sequence[str]:
    if schema.get("format") == "date-time":
        return _TIMES
    pattern = schema.get("pattern", "")
    if pattern.startswith("^(?i:"):
        return tuple(str(pattern)[5:-2].split("|"))
    least = schema.get("minLength", 0)
    return [text for text in words.strings_for(field) if len(text) >= least]


def _numbers(schema: JSON) -> Sequence[int]:
    least, most = schema.get("minimum", -1), schema.get("maximum", 2**31 - 1)
    return [n for n in (1, *_COUNTS, least, most) if least <= n <= most]

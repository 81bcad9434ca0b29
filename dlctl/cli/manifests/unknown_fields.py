"""Fields of a job that its kind does not have, as ``kubectl apply`` refuses them, and more.

The server keeps unknown fields where newer versions of Kubernetes may add some, such as in
containers; a field misspelt there would be ignored in silence, so it is refused here as well. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.core_types.type_tables import pod_types
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.cli.manifests.yaml_lines import Path, dotted
from dlctl.cli.suggestions import closest, did_you_mean
from dlctl.dialects.dialect import Dialect

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
# Where a field that is written too high up is looked for.
_NESTED: Final = ("template", "spec", "containers", "resources", "runPolicy", "schedulingPolicy")
# Templates may begin like objects; nobody reads these fields there.
_TEMPLATE_FIELDS: Final = ("apiVersion", "kind")
# The fields of a whole object; status is the server's.
_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status")

# The end of the field that names the type of an entry where replica specs are a list.
_TYPE_FIELD: Final = "replicatype"
# Fields of metadata that older versions of Kubernetes ignored.
_REMOVED_METADATA: Final = ("clusterName",)


@attrs.frozen
class UnknownField:
    """Where the field is, and what it may have meant."""

    path: Path
    suggestion: str = ""

    @property
    def message(self) -> str:
        return f"unknown field {self.path[-1]!r}{self.suggestion}"


def misspelt(manifest: ReadOnlyJSON, name: str) -> UnknownField | None:
    """Return the field of an object that seems to be meant for a missing one."""
    if name in manifest:
        return None
    given = closest(name, (str(key) for key in manifest if key not in _OBJECT_FIELDS))
    return UnknownField((given,), f"; did you mean {name}?") if given else None


def unknown_fields(manifest: ReadOnlyJSON, dialect: Dialect) -> Iterator[UnknownField]:
    """Yield the unknown fields of a job; ``status`` is not looked into."""
    spec = dialect.manifest_schema()
    fields = spec.get("properties", {})
    # Those of other versions are in the schema only to be stored: they are no suggestions.
    own = {name: each for name, each in fields.items() if name not in dialect.foreign_fields}
    top: ReadOnlyJSON = {
        "properties": {
            **{name: {} for name in _OBJECT_FIELDS},
            "metadata": {"properties": {name: {} for name in pod_types()["ObjectMeta"].fields}},
            "spec": {**spec, "properties": own},
        }
    }
    for field in _unknown(manifest, (top,), ()):
        yield _of_other_version(field, dialect) or field
    written, exact = manifest.get("spec"), dialect.exact_field
    # Elsewhere, it is among the unknown fields already.
    if isinstance(written, dict) and spec.get(_PRESERVE):
        for name in written:
            if str(name).lower() == exact.lower() and name != exact:
                yield UnknownField(("spec", name), f": write {exact}")


def _of_other_version(field: UnknownField, dialect: Dialect) -> UnknownField | None:
    """Return the field with the version that has it, if another one does."""
    *above, name = field.path
    version = dialect.foreign_fields.get(str(name)) if above == ["spec"] else None
    if not version:
        return None
    moved = ", or write it in spec.runPolicy" if _has_in_run_policy(dialect, str(name)) else ""
    return UnknownField(field.path, f": it is a field of {version}{moved}")


def _has_in_run_policy(dialect: Dialect, name: str) -> bool:
    policy = dialect.spec_schema()["properties"].get("runPolicy", {})
    return name in policy.get("properties", {})


def _unknown(value: Any, schemas: tuple[ReadOnlyJSON, ...], path: Path) -> Iterator[UnknownField]:
    """Yield the unknown fields of a value; the schemas are its own and those around it."""
    schema = schemas[-1]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, (*schemas, schema.get("items", {})), (*path, index))
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    # Where the server keeps unknown fields, the controller reads names in any case.
    names = {name.lower(): name for name in properties} if schema.get(_PRESERVE) else {}
    for key, item in value.items():
        name = names.get(str(key).lower(), key)
        if name in properties:
            yield from _unknown(item, (*schemas, properties[name]), (*path, key))
        elif isinstance(others, Mapping):
            yield from _unknown(item, (*schemas, others), (*path, key))
        elif path[-1:] == ("template",) and key in _TEMPLATE_FIELDS:
            continue
        elif properties:
            found = _moved(str(key), schemas, path) or _suggestion(str(key), schemas, path)
            yield UnknownField((*path, key), found)


def _moved(name: str, schemas: tuple[ReadOnlyJSON, ...], path: Path) -> str:
    """Return why only an older manifest has the field, and the fix; empty for other fields."""
    if path[-1:] == ("metadata",) and name in _REMOVED_METADATA:
        return ": Kubernetes has removed it: remove it"
    is_map = len(schemas) > 1 and "additionalProperties" in schemas[-2]
    if is_map and name.lower().endswith(_TYPE_FIELD):
        return f": the key, here {path[-1]}, is the type: remove it"
    return ""


def _suggestion(name: str, schemas: tuple[ReadOnlyJSON, ...], path: Path) -> str:
    """Return where the field belongs, or else the field of this level that is most like it."""
    if below := _path_below(name, schemas[-1], _NESTED):
        return f"; it belongs in {dotted((*path, *below))}"
    # The outermost is the object itself, whose fields nobody writes further down by mistake.
    for level in range(len(schemas) - 2, 0, -1):
        if name in schemas[level].get("properties", {}):
            return f"; it belongs in {dotted(path[:level])}"
    if similar := did_you_mean(name, schemas[-1]["properties"]):
        return similar
    # Labels and annotations of pods.
    below = _path_below(name, schemas[-1], ("template", "metadata"))
    return f"; it belongs in {dotted((*path, *below))}" if below else ""


def _path_below(name: str, schema: ReadOnlyJSON, through: Sequence[str]) -> Path:
    """Return the path down to the nearest object that has a field; empty without one."""
    level: list[tuple[Path, ReadOnlyJSON]] = [((), schema)]
    while level:
        found = [
            ((*path, nested), properties[nested].get("items", properties[nested]))
            for path, each in level
            for properties in (each.get("properties", {}),)
            for nested in through
            if nested in properties
        ]
        for path, each in found:
            if name in each.get("properties", {}):
                return path
        level = found
    return ()

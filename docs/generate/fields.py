"""Tables of the fields of each CRD, from the schemas that are installed."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from docs.generate.tables import table

JSON = Mapping[str, Any]
# Types of Kubernetes, which its own reference describes.
_KUBERNETES: Final = ("template", "metrics", "labelSelector")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def all_fields() -> str:
    """Return a section for each kind, in it one for each version."""
    return "\n".join(part for definition in _definitions() for part in _sections(definition))


def _definitions() -> Iterator[JSON]:
    command = (sys.executable, "-m", "dlctl", "crds")
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    yield from yaml.load_all(printed, _LOADER)


def _sections(definition: JSON) -> Iterator[str]:
    names = definition["spec"]["names"]
    group = definition["spec"]["group"]
    yield f"## {names['kind']} of {group}\n"
    yield _summary(definition)
    for version in definition["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        yield f"### {names['kind']} {group}/{version['name']}\n"
        for part in ("spec", "status"):
            rows = _rows(part, properties.get(part, {}), required=part == "spec")
            yield table(("field", "type", "meaning"), rows)


def _summary(definition: JSON) -> str:
    names = definition["spec"]["names"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    resource = f"`kubectl get {names['plural']}.{definition['spec']['group']}`"
    return f"{resource}{f', short {short}' if short else ''}.\n"


def _rows(path: str, schema: JSON, *, required: bool) -> Iterator[tuple[str, str, str]]:
    name = path.rpartition(".")[2].removesuffix("[]")
    yield f"`{path}`", _type(schema), _meaning(schema, required=required)
    if name in _KUBERNETES:
        return
    for key, value in schema.get("properties", {}).items():
        yield from _rows(f"{path}.{key}", value, required=key in schema.get("required", ()))
    if isinstance(inner := schema.get("additionalProperties"), Mapping) and "properties" in inner:
        yield from _inner(f"{path}.*", inner)
    if "properties" in (inner := schema.get("items", {})):
        yield from _inner(f"{path}[]", inner)


def _inner(path: str, schema: JSON) -> Iterator[tuple[str, str, str]]:
    for key, value in schema["properties"].items():
        yield from _rows(f"{path}.{key}", value, required=key in schema.get("required", ()))


def _type(schema: JSON) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"map of {_type(inner)}"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))


def _meaning(schema: JSON, *, required: bool) -> str:
    parts = [
        "Required." if required else "",
        schema.get("description", "").replace("<", "&lt;"),
        _values(schema),
        _bounds(schema),
        f"Default: `{schema['default']}`." if "default" in schema else "",
    ]
    return " ".join(filter(None, parts))


def _values(schema: JSON) -> str:
    values = ", ".join(f"`{value}`" for value in schema.get("enum", ()) if value)
    return f"One of {values}." if values else ""


def _bounds(schema: JSON) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f"{least} to {most}." if least < most else f"Always {least}."
    if least is not None:
        return f"At least {least}."
    return f"At most {most}." if most is not None else ""

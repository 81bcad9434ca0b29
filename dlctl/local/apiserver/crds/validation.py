"""Validation of CRDs.

``schemas.structural_schema`` checks the schemas. The messages are the real server's, which says
``spec.validation`` if all versions have the same schema.
"""

from collections.abc import Iterator
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.printing.jsonpath import JSONPathError, parsed
from dlctl.local.apiserver.schemas.structural_schema import schema_errors
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import dns_1035_label, dns_subdomain
from dlctl.local.apiserver.validation.pods import one_of
from dlctl.local.conditions import is_condition_true

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_TYPES_RULE: Final = f"must be one of {','.join(_COLUMN_TYPES)}"
_SCOPES: Final = ("Cluster", "Namespaced")


def crd_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    """Return the changes that a served CRD does not allow."""
    before, after = old["spec"], new.get("spec", {})
    errors = [
        FieldError.invalid(f"spec.{name}", after.get(name), "field is immutable")
        for name in ("group", "scope")
        if before.get(name) != after.get(name)
    ]
    established = is_condition_true(old.get("status", {}), "Established")
    for name in ("plural", "kind") if established else ():
        value = after.get("names", {}).get(name)
        if before["names"].get(name) != value:
            errors.append(FieldError.invalid(f"spec.names.{name}", value, "field is immutable"))
    names = [version.get("name") for version in after.get("versions", [])]
    for index, stored in enumerate(old.get("status", {}).get("storedVersions", [])):
        if stored not in names:
            detail = (
                f"missing from spec.versions; {stored} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {stored} and removes {stored} from status.storedVersions"
            )
            errors.append(FieldError.invalid(f"status.storedVersions[{index}]", stored, detail))
    return errors


def crd_errors(crd: JSON) -> Iterator[FieldError]:
    spec = crd.get("spec", {})
    names, group = spec.get("names", {}), spec.get("group", "")
    name = crd["metadata"].get("name", "")
    if name != f"{names.get('plural', '')}.{group}":
        yield FieldError.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield FieldError.required("spec.group")
    elif complaints := dns_subdomain(group):
        yield FieldError.invalid("spec.group", group, ",".join(complaints))
    elif "." not in group:
        yield FieldError.invalid("spec.group", group, "should be a domain with at least one dot")
    yield from one_of(spec.get("scope"), _SCOPES, "spec.scope")
    yield from _names(names)
    yield from _versions(spec.get("versions", []))
    strategy = spec.get("conversion", {}).get("strategy")
    if strategy != "None":
        # The embedded cluster calls no webhooks.
        yield FieldError.unsupported("spec.conversion.strategy", strategy, ["None"])


def _names(names: JSON) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        value, where = names.get(name, ""), f"spec.names.{name}"
        if not value:
            yield FieldError.required(where)
        elif complaints := dns_1035_label(value.lower()):
            detail = ",".join(complaints)
            if name in ("kind", "listKind"):
                detail = f"may have mixed case, but should otherwise match: {detail}"
            yield FieldError.invalid(where, value, detail)
        elif name in ("plural", "singular") and value != value.lower():
            yield FieldError.invalid(where, value, ",".join(dns_1035_label(value)))
    for field in ("shortNames", "categories"):
        for index, value in enumerate(names.get(field, ())):
            if complaints := dns_1035_label(value):
                yield FieldError.invalid(
                    f"spec.names.{field}[{index}]", value, ",".join(complaints)
                )
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield FieldError.invalid("spec.names.listKind", names["listKind"], detail)


def _versions(versions: list[JSON]) -> Iterator[FieldError]:
    schemas = [version.get("schema", {}).get("openAPIV3Schema") for version in versions]
    shared = all(schema is not None and schema == schemas[0] for schema in schemas)
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        if complaints := dns_1035_label(version.get("name", "")):
            yield FieldError.invalid(f"{where}.name", version.get("name", ""), ",".join(complaints))
        schema = schemas[index]
        if schema is None:
            yield FieldError.required(f"{where}.schema.openAPIV3Schema")
        elif not shared:
            yield from schema_errors(schema, f"{where}.schema.openAPIV3Schema")
        yield from _columns(version.get("additionalPrinterColumns", []), where)
        yield from _scale(version.get("subresources", {}).get("scale"), where)
    if shared and schemas:
        yield from schema_errors(schemas[0], "spec.validation.openAPIV3Schema")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield FieldError.invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield FieldError.invalid("spec.versions", versions, detail)
        yield from _stored_errors([v["name"] for v in versions if v.get("storage")])


def _stored_errors(stored: list[str]) -> Iterator[FieldError]:
    """Yield the errors of the status about stored versions: several, or none."""
    field = "status.storedVersions"
    if stored:
        detail = f"must have the storage version {stored[-1]}"
        yield FieldError.invalid(field, stored[:1], detail)
    else:
        yield FieldError.invalid(field, None, "must have at least one stored version")


def _columns(columns: list[JSON], version: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns):
        where = f"{version}.additionalPrinterColumns[{index}]"
        if not column.get("name"):
            yield FieldError.required(f"{where}.name")
        if not column.get("type"):
            yield FieldError.required(f"{where}.type", _COLUMN_TYPES_RULE)
        elif column["type"] not in _COLUMN_TYPES:
            yield FieldError.invalid(f"{where}.type", column["type"], _COLUMN_TYPES_RULE)
        if not column.get("jsonPath"):
            yield FieldError.required(f"{where}.JSONPath")
        elif problem := _path_problem(column["jsonPath"]):
            yield FieldError.invalid(f"{where}.JSONPath", column["jsonPath"], problem)


def _path_problem(path: Any) -> str:
    if not path.startswith("."):
        return "must be a simple json path starting with ."
    try:
        parsed(path)
    except JSONPathError as error:
        return f"is an invalid path: {error}"
    return ""


def _scale(scale: JSON | None, version: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        where, path = f"{version}.subresources.scale.{field}", scale.get(field, "")
        if not path:
            yield FieldError.required(where)
        elif not path.startswith(f"{root}."):
            yield FieldError.invalid(where, path, f"should be a json path under {root}")

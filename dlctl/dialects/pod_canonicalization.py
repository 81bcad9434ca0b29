"""Reading pod templates by the tables of core/v1: field names in any case, values by type.

Templates that our schema has accepted pass; others were stored before it, or have field names in
another case.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from dlctl.api.core_types.type_tables import Field, pod_types
from dlctl.dialects.pod_schema import POD_TEMPLATE_TYPE
from dlctl.dialects.pod_values import format_value, invalid_reason
from dlctl.errors import InvalidJobError

JSON = dict[str, Any]


def canonicalize_pod_template(value: Any, path: str) -> JSON:
    """Return a pod template with the field names of core/v1 and without null fields.

    Fields unknown to the tables are kept unchanged.

    :raises InvalidJobError: if a value has a wrong type, so that any server would reject the pod.
    """
    return _struct(value, POD_TEMPLATE_TYPE, path)


def _struct(value: Any, name: str, path: str) -> JSON:
    if not isinstance(value, Mapping):
        raise InvalidJobError(f"must be an object, not {format_value(value)}", field=path)
    fields, result = _fields(name), {}
    for key, item in value.items():
        if item is None:
            continue
        field = fields.get(key.lower())
        if field is None:
            result[key] = item
        else:
            result[field.name] = _value(item, field, field.shape, f"{path}.{key}")
    return result


@cache
def _fields(name: str) -> Mapping[str, Field]:
    return {field.name.lower(): field for field in pod_types()[name].fields.values()}


def _value(value: Any, field: Field, shape: tuple[str, ...], path: str) -> Any:
    if not shape:
        return _scalar(value, field.type, path)
    if shape[0] == "[]":
        if not isinstance(value, list):
            raise InvalidJobError(_not_a_list(value, field), field=path)
        return [_item(item, field, shape[1:], f"{path}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, Mapping):
        raise InvalidJobError(f"must be an object, not {format_value(value)}", field=path)
    # A server would read a null quantity as 0, and a null string as empty.
    return {
        key: _item(item, field, shape[1:], f"{path}[{key}]")
        for key, item in value.items()
        if item is not None or field.type != "quantity"
    }


def _item(value: Any, field: Field, shape: tuple[str, ...], path: str) -> Any:
    if value is None and not shape:
        value = {} if field.type in pod_types() else "" if field.type == "str" else None
    return _value(value, field, shape, path)


def _scalar(value: Any, type_: str, path: str) -> Any:
    if type_ in pod_types():
        return _struct(value, type_, path)
    if problem := invalid_reason(value, type_):
        raise InvalidJobError(problem, field=path)
    return value


def _not_a_list(value: Any, field: Field) -> str:
    fix = "begin each item with a dash" if field.type in pod_types() else "write [a, b] or dashes"
    return f"must be a list, not {format_value(value)}: {fix}"

"""Reading pod templates by the tables of core/v1: field names in any case, values by type.

Templates that our schema has accepted pass; others were stored before it, or have field names in
another case.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import attrs

from dlctl.api.core_types.type_tables import Field, pod_types
from dlctl.api.json_types import JSON
from dlctl.dialects.pods.pod_schema import POD_TEMPLATE_TYPE
from dlctl.dialects.value_formats import format_value, invalid_reason
from dlctl.errors import InvalidJobError

_FIELD: Final = ".{}"
_ITEM: Final = "[{}]"


def canonicalize_pod_template(value: Any, path: str) -> JSON:
    """Return a pod template with the field names of core/v1 and without null fields.

    Fields unknown to the tables are kept unchanged.

    :raises InvalidJobError: if a value has a wrong type, so that any server would reject the pod.
    """
    return _TemplateReader(path).struct(value, POD_TEMPLATE_TYPE)


@attrs.frozen
class _TemplateReader:
    """Reads values depth first, and knows the path to the current one in case it is wrong.

    A path in text for each of thousands of items would cost more than reading them.
    """

    base: str
    # A format and what to put into it, for each level below the base.
    path: list[Any] = attrs.field(factory=list)

    def struct(self, value: Any, name: str) -> JSON:
        if not isinstance(value, Mapping):
            raise self._error(f"must be an object, not {format_value(value)}")
        fields, result = _fields(name), {}
        self.path.extend((_FIELD, None))
        for key, item in value.items():
            if item is None:
                continue
            field = fields.get(key.lower())
            if field is None:
                result[key] = item
            else:
                self.path[-1] = key
                result[field.name] = self._value(item, field, field.shape)
        del self.path[-2:]
        return result

    def _value(self, value: Any, field: Field, shape: tuple[str, ...]) -> Any:
        if not shape:
            return self._single(value, field.type)
        if shape[0] == "[]":
            if not isinstance(value, list):
                raise self._error(_not_a_list(value, field))
            return list(self._items(dict(enumerate(value)), field, shape[1:]).values())
        if not isinstance(value, Mapping):
            raise self._error(f"must be an object, not {format_value(value)}")
        if field.type == "quantity":
            # A server would read null as 0.
            value = {key: item for key, item in value.items() if item is not None}
        return self._items(value, field, shape[1:])

    def _items(
        self, items: Mapping[Any, Any], field: Field, shape: tuple[str, ...]
    ) -> dict[Any, Any]:
        result = {}
        self.path.extend((_ITEM, None))
        for key, item in items.items():
            self.path[-1] = key
            is_empty = item is None and not shape
            result[key] = self._value(_zero_value(field) if is_empty else item, field, shape)
        del self.path[-2:]
        return result

    def _single(self, value: Any, type_: str) -> Any:
        if type_ in pod_types():
            return self.struct(value, type_)
        if problem := invalid_reason(value, type_):
            raise self._error(problem)
        return value

    def _error(self, message: str) -> InvalidJobError:
        below = zip(self.path[::2], self.path[1::2], strict=True)
        segments = [format_.format(key) for format_, key in below]
        return InvalidJobError(message, field="".join((self.base, *segments)))


@cache
def _fields(name: str) -> Mapping[str, Field]:
    return {field.name.lower(): field for field in pod_types()[name].fields.values()}


def _zero_value(field: Field) -> Any:
    if field.type in pod_types():
        return {}
    return "" if field.type == "str" else None


def _not_a_list(value: Any, field: Field) -> str:
    fix = "begin each item with a dash" if field.type in pod_types() else "write [a, b] or dashes"
    return f"must be a list, not {format_value(value)}: {fix}"

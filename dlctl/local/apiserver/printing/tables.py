"""Objects as rows: the ``Table`` that ``kubectl get`` requests and prints.

Columns are JSONPaths into the object, or functions of it for built-in kinds. Sorting, selecting and
the list's metadata are up to the caller.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.printing.ages import age_of
from dlctl.local.apiserver.printing.jsonpath import find
from dlctl.local.apiserver.printing.pod_rows import pod_cells, pod_conditions
from dlctl.local.apiserver.printing.rows import CELLS
from dlctl.local.apiserver.resources import Column, ServedResource

Cells = Callable[[JSON, datetime.datetime], Mapping[str, Any]]

_NAME: Final = Column("Name", ".metadata.name", format="name", description="Name of the object.")
# The default column of a custom resource.
_AGE: Final = Column("Age", ".metadata.creationTimestamp", type="date", description="Age.")
_CELLS: Final[Mapping[str, Cells]] = {**CELLS, "pods": pod_cells}


def table(
    served: ServedResource,
    items: Sequence[JSON],
    include: str = "Metadata",
    *,
    now: datetime.datetime,
) -> JSON:
    """Return the Table of a resource's objects; it has columns even without objects.

    It includes of each object what ``include`` says: None, Metadata or Object.
    """
    columns = [*(served.columns or (_AGE,))]
    if not any(column.format == "name" for column in columns):
        columns.insert(0, _NAME)
    cells = _CELLS.get(served.resource.group_resource)
    rows = []
    for item in items:
        created = item["metadata"].get("creationTimestamp")
        computed = {"Age": age_of(created, now), **cells(item, now)} if cells else {}
        row: JSON = {"cells": [_cell(item, column, computed, now) for column in columns]}
        if served.resource.group_resource == "pods" and (conditions := pod_conditions(item)):
            row["conditions"] = conditions
        rows.append(row | _object(item, include))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def _definition(column: Column) -> JSON:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _object(item: JSON, include: str) -> JSON:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {"object": {**partial, "metadata": item.get("metadata", {})}}


def _cell(item: JSON, column: Column, computed: Mapping[str, Any], now: datetime.datetime) -> Any:
    if column.name in computed:
        return computed[column.name]
    found = find(item, column.path)
    value = found[0] if found else None
    match column.type:
        case _ if value is None:
            return None
        case "date":
            return age_of(value, now) if isinstance(value, str) else None
        case "integer":
            return int(value) if _is_number(value) else None
        case "number":
            return float(value) if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return _text(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

"""Server-side apply, and the managers of an object's fields."""

from typing import Any

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.local.apiserver.raw_client import Answer

APPLY = "application/apply-patch+yaml"


async def apply(
    api: Api, path: str, body: JSON, *, manager: str = "me", force: bool = False, **params: Any
) -> Answer:
    if force:
        params["force"] = "true"
    return await api.patch(path, body, APPLY, fieldManager=manager, **params)


def managers(answer: Answer) -> dict[str, JSON]:
    """Return the fields by manager, operation and subresource."""
    assert answer.code in (200, 201), answer.body
    entries = answer.body["metadata"].get("managedFields", [])
    return {_name(entry): entry["fieldsV1"] for entry in entries}


def _name(entry: JSON) -> str:
    assert entry["fieldsType"] == "FieldsV1"
    return f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')}".strip()

"""Batch/v1 Jobs that no controller touches, and the texts in which a server rejects them."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.local.apiserver.raw_client import Answer

GROUP: Final = "batch/v1"
OTHER: Final = "example.com/other"
_REASONS: Final = {
    "Duplicate": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Invalid": "FieldValueInvalid",
    "Required": "FieldValueRequired",
    "Too": "FieldValueTooLong",
    "Unsupported": "FieldValueNotSupported",
}


def template(meta: JSON | None = None, **spec: Any) -> JSON:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]} | spec
    return {"spec": pod} | ({"metadata": meta} if meta else {})


def batch_job(meta: JSON | None = None, **spec: Any) -> JSON:
    """Return a job that another controller manages, so that it stays as it is."""
    return {
        "metadata": {"name": "a"} | (meta or {}),
        "spec": {"template": template(), "managedBy": OTHER} | spec,
    }


def path(api: Api, name: str = "") -> str:
    return api.path("jobs", name, group=GROUP)


async def created(api: Api, *, status: JSON | None = None, **spec: Any) -> JSON:
    """Create a job with a status; return it without what is different each time."""
    made = await api.create(path(api), batch_job(**spec))
    if status:
        answer = await api.patch(path(api, "a/status"), {"status": status})
        assert answer.code == 200, answer.body
    return made


def without_uid(obj: Any, uid: str) -> Any:
    """Return a copy with ``UID`` in place of the job's own."""
    if isinstance(obj, dict):
        return {key: without_uid(value, uid) for key, value in obj.items()}
    return "UID" if obj == uid else obj


def rejection(*causes: str) -> str:
    """Return the text for causes, each ``field: message``."""
    shown = " ".join(sorted({f"[{_reason(cause)} {cause.partition(': ')[0]}]" for cause in causes}))
    return f'422 Invalid: {shown} Job.batch "a" is invalid: {", ".join(sorted(causes))}'


def _reason(cause: str) -> str:
    return _REASONS[cause.partition(": ")[2].split()[0].rstrip(":")]


def outcome(api: Api, answer: Answer) -> str:
    """Return what a write came to: nothing if it was accepted."""
    return "" if answer.code < 300 else api.failure_text(answer)

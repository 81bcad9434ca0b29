"""Objects without what no two runs have in common: identities, times, keys, random suffixes."""

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKEN: Final = re.compile(r"kube-api-access-\w{5}\b")
# Of metadata that the server sets.
_SERVER: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "namespace",
    "selfLink",
)
# How it is encoded.
_P521: Final = bytes.fromhex("2b81040023")
_PEM: Final = re.compile(rb"-----BEGIN ([A-Z ]+)-----\n(.*)\n-----END \1-----\n\Z", re.DOTALL)


def normalized(obj: JSON, namespace: str) -> JSON:
    """Return an object as two runs in different namespaces should have it in common."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVER}
    if meta.get("generateName"):
        del meta["name"]
    obj = {**obj, "metadata": meta}
    obj.pop("apiVersion", None)
    match obj["kind"]:
        case "Secret":
            obj["data"] = {key: _shape(value) for key, value in obj.get("data", {}).items()}
        case "Pod":
            obj["status"] = {"phase": obj["status"]["phase"]}
        case "Service" | "PodGroup":
            obj.pop("status", None)
        case "Job":
            obj["status"].pop("uncountedTerminatedPods", None)
        case _:
            pass
    result: JSON = _rewritten(obj, namespace)
    return result


def events(found: Iterable[JSON], namespace: str) -> list[str]:
    """Return each event once, in the order in which they began."""

    def began(event: JSON) -> str:
        return event.get("firstTimestamp") or event.get("eventTime") or ""

    texts = [
        f"{event['type']} {event['reason']}: {event['message']}"
        for event in sorted(found, key=began)
    ]
    return [_rewritten(text, namespace) for text in dict.fromkeys(texts)]


def name_of(obj: JSON, job: str) -> str:
    """Return the kind and name, without the random end of a launcher pod's name."""
    name: str = obj["metadata"]["name"]
    if obj["kind"] == "Pod" and obj["metadata"].get("generateName"):
        name = f"{obj['metadata']['generateName']}?????"
    return f"{obj['kind']} {name.replace(job, 'JOB', 1)}"


def _rewritten(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _rewritten(one, namespace) for key, one in value.items()}
    if isinstance(value, list):
        return [_rewritten(one, namespace) for one in value]
    if isinstance(value, str):
        value = value.replace(namespace, "NAMESPACE")
        for pattern, instead in ((_TIME, "TIME"), (_UID, "UID"), (_TOKEN, "kube-api-access-?????")):
            value = pattern.sub(instead, value)
    return value


def _shape(value: str) -> Sequence[Any]:
    """Return what a key looks like: its kind, its type, and how long it is."""
    data = base64.b64decode(value)
    if pem := _PEM.match(data):
        body = base64.b64decode(pem[2])
        lines = {len(line) for line in pem[2].splitlines()[:-1]}
        return [
            pem[1].decode(),
            sorted(lines),
            len(body),
            body[:7].hex(),
            _P521 in body,
        ]
    kind, _, rest = data.decode().partition(" ")
    key, _, comment = rest.partition(" ")
    return [kind, len(key), comment, rest.endswith("\n")]

"""Defaults and validation of small core kinds, such as maps, secrets and claims.

Defaults modify the object in place; validation returns the errors.
"""

import base64
from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import config_key

_LIMIT_BYTES: Final = 1024 * 1024
# The keys that a Secret of a well-known type must have.
_SECRET_KEYS: Final = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def default_secret(secret: JSON) -> None:
    """Set the default type, and merge ``stringData`` into ``data``."""
    secret.setdefault("type", "Opaque")
    for key, value in secret.pop("stringData", {}).items():
        encoded = base64.b64encode(value.encode()).decode()
        secret.setdefault("data", {})[key] = encoded


def secret_errors(secret: JSON) -> list[FieldError]:
    data = secret.get("data", {})
    errors = list(_keys(data, "data"))
    wanted = _SECRET_KEYS.get(secret["type"], ())
    errors += [FieldError.required(f"data[{key}]") for key in wanted if key not in data]
    if sum(len(base64.b64decode(value)) for value in data.values()) > _LIMIT_BYTES:
        errors.append(FieldError.too_long("data", _LIMIT_BYTES))
    return errors


def secret_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    errors = _immutable_errors(old, new, ("data",))
    if old.get("type") != new.get("type"):
        errors.append(FieldError.invalid("type", new.get("type"), "field is immutable"))
    return errors


def config_map_errors(obj: JSON) -> list[FieldError]:
    data, binary = obj.get("data", {}), obj.get("binaryData", {})
    errors = [*_keys(data, "data"), *_keys(binary, "binaryData")]
    for key in data:
        if key in binary:
            detail = "duplicate of key present in binaryData"
            errors.append(FieldError.invalid(f"data[{key}]", key, detail))
    if sum(len(value) for value in (*data.values(), *binary.values())) > _LIMIT_BYTES:
        errors.append(FieldError.too_long("", _LIMIT_BYTES))
    return errors


def config_map_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    return _immutable_errors(old, new, ("data", "binaryData"))


def _keys(data: JSON, path: str) -> Iterator[FieldError]:
    for key in data:
        for complaint in config_key(key):
            yield FieldError.invalid(f"{path}[{key}]", key, complaint)


def _immutable_errors(old: JSON, new: JSON, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    changed = [name for name in fields if old.get(name) != new.get(name)]
    if not new.get("immutable"):
        changed.insert(0, "immutable")
    return [FieldError.forbidden(name, detail) for name in changed]


def default_claim(claim: JSON) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def default_event(event: JSON) -> None:
    event.setdefault("involvedObject", {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(name, None)
    event.setdefault("source", {})
    event.setdefault("reportingComponent", event["source"].get("component", ""))
    event.setdefault("reportingInstance", event["source"].get("host", ""))


def event_errors(event: JSON) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    involved = event["involvedObject"].get("namespace", "")
    # An event about a cluster-scoped object is stored in the default namespace.
    if (involved or "default") != namespace:
        detail = "does not match event.namespace"
        return [FieldError.invalid("involvedObject.namespace", involved, detail)]
    return []


def lease_errors(lease: JSON) -> list[FieldError]:
    spec = lease.get("spec", {})
    errors = []
    for name in ("leaseDurationSeconds", "leaseTransitions"):
        value = spec.get(name)
        minimum = 1 if name == "leaseDurationSeconds" else 0
        if value is not None and value < minimum:
            words = "must be greater than 0" if minimum else "must be greater than or equal to 0"
            errors.append(FieldError.invalid(f"spec.{name}", value, words))
    return errors

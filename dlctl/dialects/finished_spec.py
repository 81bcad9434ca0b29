"""The part of a finished job's spec that is still needed. Pure."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.lenient_reader import POLICY_FIELDS

# Smaller specs are not worth the time.
_SMALL_BYTES: Final = 256


def prune_finished_spec(spec: msgspec.Raw, obj: DecodedObject) -> msgspec.Raw:
    """Return the part of a spec that a finished job needs: its form and policies."""
    if len(bytes(spec)) <= _SMALL_BYTES or obj.invalid_reason:
        return spec
    if isinstance(obj.spec, dict):
        kept: Any = dict(_policy_fields(obj.spec))
        # These fields distinguish the forms.
        kept |= {name: type(v)() for name, v in obj.spec.items() if _is_replica_specs(name, v)}
        kept |= {name: "" for name in obj.spec if name == obj.dialect.form_field}
    else:
        kept = [] if isinstance(obj.spec, list) else None
    return msgspec.Raw(msgspec.json.encode(kept))


def _policy_fields(spec: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in spec.items():
        if name.lower() not in {*POLICY_FIELDS, "managedby"}:
            continue
        if isinstance(value, dict):
            yield name, dict(_policy_fields(value))
        elif isinstance(value, int) or (isinstance(value, str) and len(value) <= _SMALL_BYTES):
            yield name, value


def _is_replica_specs(name: str, value: Any) -> bool:
    return name.lower().endswith("replicaspecs") and isinstance(value, dict | list)

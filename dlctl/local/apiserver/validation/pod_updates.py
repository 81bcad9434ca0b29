"""Validation of pod updates: only images, deadlines, tolerations and gates may change."""

import copy
from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.scheduling_gates import DIRECTIVES, gate_update_errors

_MUTABLE: Final = (
    "spec.containers[*].image",
    "spec.initContainers[*].image",
    "spec.activeDeadlineSeconds",
)
_RULE: Final = (
    "pod updates may not change fields other than "
    + ",".join(f"`{field}`" for field in _MUTABLE)
    + ",`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_update_errors(old_pod: JSON, new_pod: JSON) -> Iterator[FieldError]:
    old, new = old_pod.get("spec", {}), new_pod.get("spec", {})
    for field in ("containers", "initContainers"):
        if len(old.get(field, ())) != len(new.get(field, ())):
            detail = "pod updates may not add or remove containers"
            yield FieldError.forbidden(f"spec.{field}", detail)
            return
    yield from _deadline(old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"))
    kept = old.get("tolerations", [])
    extra = new.get("tolerations", [])
    if any(each not in extra for each in kept):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield FieldError.forbidden("spec.tolerations", detail)
    yield from gate_update_errors(old, new)
    if _immutable(new, old) != _immutable(old, old):
        yield FieldError.forbidden("spec", _RULE)


def _deadline(old: int | None, new: int | None) -> Iterator[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if old is not None and new is None:
        yield FieldError.invalid(path, None, "must not update from a positive integer to nil value")
    elif old is not None and new is not None and new > old:
        yield FieldError.invalid(path, new, "must be less than or equal to previous value")


def _immutable(spec: JSON, old: JSON) -> JSON:
    rest = copy.deepcopy(spec)
    for name in ("activeDeadlineSeconds", "tolerations"):
        rest.pop(name, None)
    for field in ("containers", "initContainers"):
        for container in rest.get(field, ()):
            container.pop("image", None)
    # Errors in these fields are reported separately.
    for name in ("schedulingGates", *(DIRECTIVES if old.get("schedulingGates") else ())):
        rest.pop(name, None)
    return rest

"""Validation of Job updates: what stays as created, and what may change while suspended."""

import copy
from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.conditions import is_condition_true

_IMMUTABLE: Final = ("completions", "selector", "completionMode", "managedBy")
# Where the pods of a suspended job may run: Kueue changes it between suspending and resuming.
_DIRECTIVES: Final = ("nodeSelector", "tolerations", "schedulingGates")


def job_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    before, after = old["spec"], new["spec"]
    found = [
        FieldError.invalid(f"spec.{name}", after.get(name), "field is immutable")
        for name in _IMMUTABLE
        if before.get(name) != after.get(name)
    ]
    return [*found, *_template(old, after["template"])]


def _template(old: JSON, template: JSON) -> Iterator[FieldError]:
    kept, path = old["spec"]["template"], "spec.template"
    if _is_at_rest(old):
        # The metadata may change as a whole.
        path, template, kept = f"{path}.spec", template["spec"], copy.deepcopy(kept["spec"])
        _take_directives(kept, template)
        _take_resources(kept, template)
    if kept != template:
        yield FieldError.invalid(path, template, "field is immutable")


def _is_at_rest(job: JSON) -> bool:
    """Return whether the job is suspended and no pod of it is left from before."""
    status = job.get("status", {})
    stopped = "startTime" not in status or is_condition_true(status, "Suspended")
    return bool(job["spec"]["suspend"]) and stopped and not status.get("active")


def _take_directives(spec: JSON, new: JSON) -> None:
    for name in _DIRECTIVES:
        _take(spec, new, name)
    affinity = {**spec.get("affinity", {})}
    _take(affinity, new.get("affinity", {}), "nodeAffinity")
    if affinity or "affinity" in new:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)


def _take_resources(spec: JSON, new: JSON) -> None:
    for field in ("containers", "initContainers"):
        old_items, new_items = spec.get(field, []), new.get(field, [])
        if len(old_items) == len(new_items):
            for old_item, new_item in zip(old_items, new_items, strict=True):
                if old_item["name"] == new_item.get("name"):
                    _take(old_item, new_item, "resources")


def _take(old: JSON, new: JSON, name: str) -> None:
    """Change one field of the old object to what it is in the new one."""
    if name in new:
        old[name] = new[name]
    else:
        old.pop(name, None)

"""Scheduling gates: they keep a pod from every scheduler until they are removed.

Gates are set on creation and can only be removed; while there are some, the node selector and
affinity can still be narrowed.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.clock import Clock, timestamp
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import qualified_name

# Spec fields that may also change while there are gates.
DIRECTIVES: Final = ("nodeSelector", "affinity")


def gate_errors(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield the errors of the gates of a pod, or of a template at another path."""
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        where, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        for complaint in qualified_name(name):
            yield FieldError.invalid(where, name, complaint)
        if name in names:
            yield FieldError.duplicate(where, name)
        names.add(name)


def gate_create_errors(spec: JSON) -> Iterator[FieldError]:
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield FieldError.forbidden("spec.nodeName", detail)


def gate_update_errors(old: JSON, new: JSON) -> Iterator[FieldError]:
    """Yield errors for new gates, and for changes of the node selector other than additions."""
    before = {gate["name"] for gate in old.get("schedulingGates", ())}
    for index, gate in enumerate(new.get("schedulingGates", ())):
        if (name := gate.get("name", "")) not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield FieldError.forbidden(f"spec.schedulingGates[{index}].name", detail)
    wanted, chosen = new.get("nodeSelector", {}), old.get("nodeSelector", {})
    if before and not chosen.items() <= wanted.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield FieldError.invalid("spec.nodeSelector", wanted, detail)


def scheduling_gated_condition(clock: Clock) -> Callable[[JSON], JSON]:
    """Return a function that adds the SchedulingGated condition to a new pod with gates."""

    def prepared(pod: JSON) -> JSON:
        if not pod["spec"].get("schedulingGates"):
            return pod
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(clock.now()),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        return {**pod, "status": pod["status"] | {"conditions": [condition]}}

    return prepared

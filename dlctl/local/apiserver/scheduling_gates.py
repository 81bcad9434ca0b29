"""Scheduling gates: what holds a pod back from every scheduler until it is taken away.

Gates are given when the pod is created and can only be removed; while there are some, where the
pod may run can still be narrowed down.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dlctl.clock import Clock
from dlctl.local.apiserver.names import qualified_name
from dlctl.local.apiserver.objects import timestamp
from dlctl.local.apiserver.resources import JSON
from dlctl.local.apiserver.status import Cause

# What of a spec may change besides, while there are gates.
DIRECTIVES: Final = ("nodeSelector", "affinity")


def gate_causes(spec: JSON, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the gates of a pod, or of a template at another path."""
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        where, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        for complaint in qualified_name(name):
            yield Cause.invalid(where, name, complaint)
        if name in names:
            yield Cause.duplicate(where, name)
        names.add(name)


def gate_create_causes(spec: JSON) -> Iterator[Cause]:
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield Cause.forbidden("spec.nodeName", detail)


def gate_update_causes(old: JSON, new: JSON) -> Iterator[Cause]:
    """Yield which gates are new, and what of the node selector is not an addition."""
    before = {gate["name"] for gate in old.get("schedulingGates", ())}
    for index, gate in enumerate(new.get("schedulingGates", ())):
        if (name := gate.get("name", "")) not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield Cause.forbidden(f"spec.schedulingGates[{index}].name", detail)
    wanted, chosen = new.get("nodeSelector", {}), old.get("nodeSelector", {})
    if before and not chosen.items() <= wanted.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield Cause.invalid("spec.nodeSelector", wanted, detail)


def scheduling_gated_condition(clock: Clock) -> Callable[[JSON], JSON]:
    """Return what says of a new pod that its gates hold it back."""

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

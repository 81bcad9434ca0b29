"""Makes pods report the last lines of a failed program's output in their status.

This evidence needs no right to read logs, and outlives the node. Pure.
"""

from collections.abc import Mapping
from typing import Any, Final

from dlctl.api.json_types import JSON

_FIELD: Final = "terminationMessagePolicy"
_POLICY: Final = "FallbackToLogsOnError"


def with_termination_messages(pod_spec: JSON, training_container: str) -> JSON:
    """Return a pod spec whose training and init containers report them, unless the user chose."""
    containers = [
        _with_policy(container) if container.get("name") == training_container else container
        for container in pod_spec["containers"]
    ]
    # Init containers that run beside the program are not judged.
    init = [
        container if container.get("restartPolicy") == "Always" else _with_policy(container)
        for container in pod_spec.get("initContainers") or ()
    ]
    return {**pod_spec, "containers": containers, **({"initContainers": init} if init else {})}


def _with_policy(container: Mapping[str, Any]) -> JSON:
    return {**container, _FIELD: container.get(_FIELD) or _POLICY}

"""Ended pods that Kueue's finalizer keeps although their replacements need the names.

Pure. Kueue removes its finalizer from a pod of a pod group once the group has finished or a
replacement exists; dlctl's replacement has the same name and cannot be created before that.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dlctl.api.objects.pods import Pod

FINALIZER: Final = "kueue.x-k8s.io/managed"


def held_by_kueue(pods: Iterable[Pod]) -> Iterator[Pod]:
    """Yield the deleted pods whose containers have stopped and that Kueue's finalizer keeps."""
    for pod in pods:
        # With a grace period of zero, only finalizers keep a pod.
        stopped = pod.metadata.is_terminating and pod.metadata.deletion_grace_period_seconds == 0
        if stopped and FINALIZER in (pod.metadata.finalizers or ()):
            yield pod


def release_patch(pod: Pod) -> Mapping[str, Any]:
    """Return the merge patch that removes Kueue's finalizer from a pod."""
    kept = [f for f in pod.metadata.finalizers or () if f != FINALIZER]
    return {"metadata": {"finalizers": kept or None}}

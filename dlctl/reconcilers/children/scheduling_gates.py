"""Removes dlctl's scheduling gate, which holds launchers back, from one pod or from all."""

from typing import Final

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import MANAGED_BY_SELECTOR, PODS, ObjectKey
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE, Pod
from dlctl.controller.object_writer import patch_if_unchanged
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.kube.queries import PAGE_SIZE

MAX_TRIES: Final = 5


def ungate_patch(pod: Pod) -> ReadOnlyJSON:
    """Return the merge patch that removes only dlctl's gate.

    Only for an unchanged pod: a gate that was removed meanwhile cannot be added back.
    """
    gates = (gate.name for gate in pod.scheduling_gates)
    kept = [{"name": name} for name in gates if name != WORKERS_RUNNING_GATE]
    return {"spec": {"schedulingGates": kept or None}}


async def ungate_all(client: Client, namespace: str) -> list[ObjectKey]:
    """Remove dlctl's gate from all gated pods and return their keys; no namespace means every one.

    Repeating it finds none, unless a running controller creates gated pods.

    :raises ApiError, UnreachableError: if a pod could not be patched; repeating is safe.
    """
    released: list[ObjectKey] = []
    pages = client.pages(
        PODS, Pod, namespace=namespace, label_selector=MANAGED_BY_SELECTOR, limit=PAGE_SIZE
    )
    async for page in pages:
        released += [pod.key for pod in page.items if await _ungate(client, pod)]
    return released


async def _ungate(client: Client, pod: Pod) -> bool:
    for left in reversed(range(MAX_TRIES)):
        if not pod.is_gated or pod.metadata.is_terminating:
            return False
        try:
            await patch_if_unchanged(client, PODS, pod, ungate_patch(pod))
        except NotFoundError:
            return False
        except ConflictError:
            if not left:
                raise
        else:
            return True
        try:
            pod = await client.get(PODS, pod.key, Pod)
        except NotFoundError:
            return False
    return False

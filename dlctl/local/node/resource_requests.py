"""Extended resources, such as ``nvidia.com/gpu``, that pods request. Pure."""

from collections import Counter
from collections.abc import Mapping

from dlctl.api.quantities import parse_quantity
from dlctl.local.node.api_types import Container, NodePod


def container_requests(container: Container) -> Mapping[str, int]:
    """Return the requested numbers by resource; a limit counts as a request."""
    resources = container.resources
    if resources is None:
        return {}
    wanted = {**(resources.requests or {}), **(resources.limits or {})}
    return {name: int(parse_quantity(str(count))) for name, count in wanted.items() if "/" in name}


def pod_requests(pod: NodePod) -> Mapping[str, int]:
    """Return the numbers that the pod needs at the same time."""
    together, one_by_one = concurrent_containers(pod)
    needed: Counter[str] = Counter()
    for container in together:
        needed.update(container_requests(container))
    for container in one_by_one:
        needed |= Counter(container_requests(container))
    return {name: count for name, count in needed.items() if count > 0}


def concurrent_containers(pod: NodePod) -> tuple[list[Container], list[Container]]:
    """Return the containers that run at the same time, and those that run before, one by one."""
    init = pod.spec.init_containers or ()
    sidecars = [container for container in init if container.is_sidecar]
    return [*pod.spec.containers, *sidecars], [each for each in init if not each.is_sidecar]

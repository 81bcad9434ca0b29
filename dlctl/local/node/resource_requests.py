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
    """Return the numbers that the pod needs at the same time; init containers run one by one."""
    together: Counter[str] = Counter()
    for container in pod.spec.containers:
        together.update(container_requests(container))
    for container in pod.spec.init_containers or ():
        together |= Counter(container_requests(container))
    return {name: count for name, count in together.items() if count > 0}

"""What containers may know of their pod: its fields, and the limits and requests of containers."""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Final

import attrs

from dlctl.api.quantities import parse_quantity
from dlctl.local.node.api_types import NodePod, ResourceFieldSelector, ResourceRequirements
from dlctl.local.node.containers.references import MissingReferenceError

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


@attrs.frozen
class PodPlacement:
    """Where a pod runs, as exposed to its containers."""

    node_name: str
    pod_ip: str
    host_ip: str
    # The node's own resources: the limits of a container that sets none.
    allocatable: Mapping[str, str] = attrs.field(factory=dict)


def pod_field(pod: NodePod, path: str, place: PodPlacement) -> str:
    """Return a field of the pod as a string, or raise :class:`MissingReferenceError`."""
    if found := _SUBSCRIPT.fullmatch(path):
        which, key = found.groups()
        held = pod.metadata.labels if which == "labels" else pod.metadata.annotations
        return (held or {}).get(key, "")
    fields = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace or "",
        "metadata.uid": pod.metadata.uid,
        "metadata.labels": _format_map(pod.metadata.labels),
        "metadata.annotations": _format_map(pod.metadata.annotations),
        "spec.nodeName": place.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
    }
    if path not in fields:
        raise MissingReferenceError(f"fieldPath {path!r} is not supported")
    return fields[path]


def resource_field(
    pod: NodePod, reference: ResourceFieldSelector, place: PodPlacement, default_container: str = ""
) -> str:
    """Return a limit or request in units of the divisor, rounded up."""
    wanted = reference.container_name or default_container
    named = (each for each in pod.spec.all_containers if each.name == wanted)
    if (container := next(named, None)) is None:
        raise MissingReferenceError(f'resourceFieldRef: container "{wanted}" is not in the pod')
    which, _, resource = reference.resource.partition(".")
    resources = container.resources or ResourceRequirements()
    held = resources.limits if which == "limits" else resources.requests
    amount = parse_quantity(str((held or {}).get(resource, 0)))
    if which == "limits" and not amount:
        amount = parse_quantity(place.allocatable.get(resource, "0"))
    divisor = parse_quantity(str(reference.divisor or 0)) or Decimal(1)
    return str(int((amount / divisor).to_integral_value(ROUND_CEILING)))


def _format_map(entries: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted((entries or {}).items()))

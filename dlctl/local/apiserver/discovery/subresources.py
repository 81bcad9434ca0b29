"""The subresources of a resource, and what may be done with each."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.local.apiserver.resources import ServedResource

_STATUS_VERBS: Final = ("get", "patch", "update")


@attrs.frozen
class Subresource:
    """What is served below an object, such as its status."""

    name: str
    # Of its requests or responses: ``group``, ``version`` and ``kind``.
    kind: JSON
    verbs: Sequence[str]


def _subresource(name: str, group: str, kind: str, *verbs: str) -> Subresource:
    return Subresource(name, {"group": group, "version": "v1", "kind": kind}, verbs)


_SCALE: Final = _subresource("scale", "autoscaling", "Scale", *_STATUS_VERBS)
_TOKEN: Final = _subresource("token", "authentication.k8s.io", "TokenRequest", "create")
_OF_PODS: Final = (
    _subresource("attach", "", "PodAttachOptions", "create", "get"),
    _subresource("binding", "", "Binding", "create"),
    _subresource("eviction", "policy", "Eviction", "create"),
    _subresource("exec", "", "PodExecOptions", "create", "get"),
    _subresource("log", "", "Pod", "get"),
    _subresource("portforward", "", "PodPortForwardOptions", "create", "get"),
)


def subresources(served: ServedResource) -> Iterator[Subresource]:
    """Yield the subresources of a resource."""
    if served.resource == PODS:
        yield from _OF_PODS
    if served.scale is not None:
        yield _SCALE
    if served.resource.group_resource == "serviceaccounts":
        yield _TOKEN
    if served.resource.group_resource == "namespaces":
        yield Subresource("finalize", served.group_version_kind, ("update",))
    if served.has_status:
        yield Subresource("status", served.group_version_kind, _STATUS_VERBS)

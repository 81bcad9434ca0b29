"""Questions in the form of objects: may I, and who am I. They are answered and not stored.

Whoever has the token may do everything, so the answers are always the same.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import bodies, status
from dlctl.local.apiserver.builtins import BuiltinStrategy
from dlctl.local.apiserver.calls import Call, Reply, Response
from dlctl.local.apiserver.resources import JSON, ResourceRegistry, ServedResource

_AUTHORIZATION: Final = "authorization.k8s.io"
_USER: Final = {"username": "dlctl", "groups": ["system:masters", "system:authenticated"]}

Answer = Callable[[ServedResource, Call], Response]


def register(registry: ResourceRegistry) -> None:
    """Serve the reviews; :func:`answering` answers them."""
    for plural, kind in (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("subjectaccessreviews", "SubjectAccessReview"),
    ):
        _add(registry, Resource(_AUTHORIZATION, "v1", plural, kind, namespaced=False), _allow)
    me = Resource(
        "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
    )
    _add(registry, me, _introduce)


def answering(otherwise: Answer) -> Answer:
    """Return what answers reviews itself and leaves all else to ``otherwise``."""

    def answer(served: ServedResource, call: Call) -> Response:
        if not served.create_only:
            return otherwise(served, call)
        if call.verb != "create" or call.target.name:
            raise status.method_not_allowed()
        obj = bodies.sent_object(bodies.parsed(call.body, call.content_type), served)
        answered = served.strategy.admit_create({**obj, "metadata": obj.get("metadata") or {}})
        return Reply(msgspec.json.encode(answered), 201)

    return answer


def _add(registry: ResourceRegistry, resource: Resource, fill: Callable[[JSON], None]) -> None:
    registry.add(
        ServedResource(
            resource=resource,
            singular=resource.kind.lower(),
            strategy=BuiltinStrategy(resource, default=fill),
            create_only=True,
        )
    )


def _allow(review: JSON) -> None:
    review["status"] = {"allowed": True, "reason": "the token of the embedded cluster may do all"}


def _introduce(review: JSON) -> None:
    review["status"] = {"userInfo": _USER}

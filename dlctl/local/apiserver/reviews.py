"""Questions in the form of objects: may I, may they, who am I. They are answered, not stored."""

from collections.abc import Callable
from typing import Final

import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import bodies, status
from dlctl.local.apiserver.builtins import BuiltinStrategy
from dlctl.local.apiserver.calls import Call, Reply, Response
from dlctl.local.apiserver.identities import User, named_user
from dlctl.local.apiserver.rbac import Act, Authorizer
from dlctl.local.apiserver.resources import JSON, ResourceRegistry, ServedResource

_REVIEWS: Final = (
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
)

Answer = Callable[[ServedResource, Call], Response]


def register(registry: ResourceRegistry) -> None:
    """Serve the reviews; :func:`answering` answers them."""
    for group, plural, kind in _REVIEWS:
        resource = Resource(group, "v1", plural, kind, namespaced=False)
        registry.add(
            ServedResource(
                resource=resource,
                singular=kind.lower(),
                strategy=BuiltinStrategy(resource),
                create_only=True,
            )
        )


def answering(otherwise: Answer, authorizer: Authorizer) -> Answer:
    """Return what answers reviews itself and leaves all else to ``otherwise``."""

    def answer(served: ServedResource, call: Call) -> Response:
        if not served.create_only:
            return otherwise(served, call)
        if call.verb != "create" or call.target.name:
            raise status.method_not_allowed()
        obj = bodies.sent_object(bodies.parsed(call.body, call.content_type), served)
        review = served.strategy.admit_create({**obj, "metadata": obj.get("metadata") or {}})
        if served.resource.kind == "SelfSubjectReview":
            review["status"] = {"userInfo": call.user.wire()}
        else:
            review["status"] = _verdict(review.get("spec") or {}, call.user, authorizer)
        return Reply(msgspec.json.encode(review), 201)

    return answer


def _verdict(spec: JSON, asking: User, authorizer: Authorizer) -> JSON:
    user = named_user(spec["user"], spec.get("groups") or ()) if spec.get("user") else asking
    about = spec.get("resourceAttributes") or {}
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    act = Act(
        about.get("verb", ""),
        about.get("group", ""),
        resource,
        about.get("namespace", ""),
        about.get("name", ""),
    )
    reason = authorizer.reason(user, act)
    return {"allowed": bool(reason), **({"reason": reason} if reason else {})}

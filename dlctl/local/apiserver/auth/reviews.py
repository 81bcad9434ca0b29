"""Reviews: questions about permissions and identity as objects, which are not stored."""

from typing import Final

import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import request_bodies, status
from dlctl.local.apiserver.auth.rbac import AccessAttributes, Authorizer
from dlctl.local.apiserver.builtins.strategies import BuiltinStrategy
from dlctl.local.apiserver.requests import ApiRequest, ApiResponse, BufferedResponse, VerbHandler
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.users import User, named_user

_REVIEWS: Final = (
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
)


def register(registry: ResourceRegistry) -> None:
    """Register the reviews; :func:`with_reviews` handles them."""
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


def with_reviews(handler: VerbHandler, authorizer: Authorizer) -> VerbHandler:
    """Return a handler that serves reviews and passes everything else on."""

    def handle(served: ServedResource, call: ApiRequest) -> ApiResponse:
        if not served.create_only:
            return handler(served, call)
        if call.verb != "create" or call.info.name:
            raise status.method_not_allowed()
        obj = request_bodies.decode_object(
            request_bodies.parse(call.body, call.content_type), served
        )
        review = served.strategy.admit_create({**obj, "metadata": obj.get("metadata") or {}})
        if served.resource.kind == "SelfSubjectReview":
            review["status"] = {"userInfo": call.user.user_info()}
        else:
            review["status"] = _decide(review.get("spec") or {}, call.user, authorizer)
        return BufferedResponse(msgspec.json.encode(review), 201)

    return handle


def _decide(spec: JSON, asking: User, authorizer: Authorizer) -> JSON:
    user = named_user(spec["user"], spec.get("groups") or ()) if spec.get("user") else asking
    about = spec.get("resourceAttributes") or {}
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    act = AccessAttributes(
        about.get("verb", ""),
        about.get("group", ""),
        resource,
        about.get("namespace", ""),
        about.get("name", ""),
    )
    reason = authorizer.allowed_reason(user, act)
    return {"allowed": bool(reason), **({"reason": reason} if reason else {})}

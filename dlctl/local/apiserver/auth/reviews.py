"""Reviews: questions about permissions and identity as objects, which are not stored."""

from typing import Final

import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import request_bodies, status
from dlctl.local.apiserver.auth.rbac import DISCOVERY_PATHS, AccessAttributes, Authorizer
from dlctl.local.apiserver.builtins.strategies import BuiltinStrategy
from dlctl.local.apiserver.requests import ApiRequest, ApiResponse, BufferedResponse, VerbHandler
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.users import User, named_user

_REVIEWS: Final = (
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
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
        review = request_bodies.parse_typed(call.body, call.content_type, served.resource)
        spec = review.get("spec") or {}
        match served.resource.kind:
            case "SelfSubjectReview":
                review["status"] = {"userInfo": call.user.user_info()}
            case "SelfSubjectRulesReview":
                review["status"] = _rules_status(spec, call.user, authorizer)
            case _:
                review["status"] = _access_status(spec, call.user, authorizer)
        return BufferedResponse(msgspec.json.encode(review), 201)

    return handle


def _access_status(spec: JSON, asking: User, authorizer: Authorizer) -> JSON:
    """Return whether the user of the spec, or else the one who asks, may do what it names."""
    user = named_user(spec["user"], spec.get("groups") or ()) if spec.get("user") else asking
    about = spec.get("resourceAttributes") or {}
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    attributes = AccessAttributes(
        about.get("verb", ""),
        about.get("group", ""),
        resource,
        about.get("namespace", ""),
        about.get("name", ""),
    )
    reason = authorizer.allowed_reason(user, attributes)
    return {"allowed": bool(reason), **({"reason": reason} if reason else {})}


def _rules_status(spec: JSON, user: User, authorizer: Authorizer) -> JSON:
    """Return what the user may do in the namespace of the spec."""
    if not spec.get("namespace"):
        raise status.bad_request("no namespace on request")
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    rules = [
        {name: rule[name] for name in fields if rule.get(name)}
        for rule in authorizer.rules(user, spec["namespace"])
        if rule.get("resources")
    ]
    below = [f"{path}/*" for path in DISCOVERY_PATHS]
    paths: JSON = {"verbs": ["get"], "nonResourceURLs": [*DISCOVERY_PATHS, *below]}
    if user.is_superuser:
        paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {"resourceRules": rules, "nonResourceRules": [paths], "incomplete": False}

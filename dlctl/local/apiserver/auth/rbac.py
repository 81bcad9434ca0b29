"""Authorization of service accounts by their roles and bindings.

Roles and bindings are read on demand. A ClusterRole with an aggregation rule grants what those that
it selects grant, whatever rules are stored in it. Granting is not limited to one's own permissions.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    ObjectKey,
    Resource,
)
from dlctl.local.apiserver import request_bodies, resource_traits, status
from dlctl.local.apiserver.auth.default_roles import ALL_RESOURCES
from dlctl.local.apiserver.label_matching import selects
from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.users import User

# Readable by every user, so that clients can discover the API.
DISCOVERY_PATHS: Final = ("/version", "/api", "/apis", "/openapi")
# The rights of every user: to review their own rights and identity, as by system:basic-user.
_BASIC_RULES: Final = (
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
)
_BASIC_REASON: Final = (
    'RBAC: allowed by ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user"'
)


@attrs.frozen
class AccessAttributes:
    """A verb on a resource; ``resource`` includes the subresource."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, request: ApiRequest) -> "AccessAttributes":
        target = request.info
        namespace, name = target.namespace, target.name
        if target.plural == "namespaces" and not target.group:
            namespace = name
        if not name and request.verb in ("list", "watch", "deletecollection"):
            name = _selected_name(request.query.get("fieldSelector", ""))
        resource = "/".join(filter(None, (target.plural, target.subresource)))
        verb = request.verb
        if resource in ("pods/attach", "pods/exec", "pods/portforward"):
            # A WebSocket request is a GET, but needs the same permission as a POST.
            verb = "create"
        return cls(verb, target.group, resource, namespace, name)

    def matches(self, rule: Mapping[str, Any]) -> bool:
        below = self.resource.partition("/")[2]
        resources = {"*", self.resource} | ({f"*/{below}"} if below else set())
        names = rule.get("resourceNames")
        return (
            bool({"*", self.verb} & set(rule.get("verbs") or ()))
            and bool({"*", self.group} & set(rule.get("apiGroups") or ()))
            and bool(resources & set(rule.get("resources") or ()))
            and (not names or self.name in names)
        )


@attrs.frozen
class Authorizer:
    """Decides by the roles and bindings in the storage."""

    storage: Storage

    def authorize(self, user: User, request: ApiRequest) -> None:
        """Reject a request that the user is not allowed to make."""
        attributes = AccessAttributes.of(request)
        if not self.allowed_reason(user, attributes):
            raise _forbidden(user, attributes)
        if self._creates(request):
            self.authorize(user, attrs.evolve(request, verb="create"))

    def _creates(self, request: ApiRequest) -> bool:
        """Return whether a request for an object creates it, unlike most with its verb."""
        target = request.info
        resource = Resource(target.group, target.version, target.plural, "")
        applies = request.verb == "patch" and request_bodies.applies(request.content_type)
        puts = request.verb == "update" and resource_traits.allows_create_on_update(resource)
        if target.subresource or not (applies or puts):
            return False
        return self.storage.get(resource, target.key) is None

    def allowed_reason(self, user: User, attributes: AccessAttributes) -> str:
        """Return why the user is allowed to; empty if not."""
        if user.is_superuser:
            return "the token of the embedded cluster allows everything"
        if any(attributes.matches(rule) for rule in _BASIC_RULES):
            return _BASIC_REASON
        for kind, binding in self._bindings(user, attributes.namespace):
            role = binding["roleRef"]
            if any(attributes.matches(rule) for rule in self._rules(role, binding)):
                name = "/".join(filter(None, (binding["metadata"]["name"], attributes.namespace)))
                shown = binding["metadata"]["name"] if kind == CLUSTER_ROLE_BINDINGS.kind else name
                return f'RBAC: allowed by {kind} "{shown}" of {role["kind"]} "{role["name"]}"'
        return ""

    def rules(self, user: User, namespace: str) -> list[JSON]:
        """Return the rules for the user in a namespace, and those for all namespaces."""
        if user.is_superuser:
            return [ALL_RESOURCES]
        bindings = [binding for _, binding in self._bindings(user, namespace)]
        granted = [self._rules(binding["roleRef"], binding) for binding in bindings]
        return [*_BASIC_RULES, *itertools.chain.from_iterable(granted)]

    def _bindings(self, user: User, namespace: str) -> Iterator[tuple[str, JSON]]:
        for resource in (CLUSTER_ROLE_BINDINGS, *((ROLE_BINDINGS,) if namespace else ())):
            within = namespace if resource.namespaced else ""
            for stored in self.storage.objects(resource, within):
                binding = stored.decoded(resource)
                if any(_is_subject(user, each, within) for each in binding.get("subjects") or ()):
                    yield resource.kind, binding

    def _rules(self, role: JSON, binding: JSON) -> list[JSON]:
        """Return the rules of a role; none if it does not exist."""
        resource, namespace = CLUSTER_ROLES, ""
        if role["kind"] == ROLES.kind:
            resource, namespace = ROLES, binding["metadata"].get("namespace", "")
        stored = self.storage.get(resource, ObjectKey(namespace, role["name"]))
        if stored is None:
            return []
        found = stored.decoded(resource)
        return list(self._aggregated_rules(found)) if _selectors(found) else _own_rules(found)

    def _aggregated_rules(self, role: JSON) -> Iterator[JSON]:
        """Yield the rules of the ClusterRoles that a role selects, and of those that they do."""
        every = [stored.decoded(CLUSTER_ROLES) for stored in self.storage.objects(CLUSTER_ROLES)]
        rest = {other["metadata"]["name"]: other for other in every}
        rest.pop(role["metadata"]["name"], None)
        selecting = [role]
        while selecting:
            selectors = _selectors(selecting.pop())
            chosen = [other for other in rest.values() if _is_selected(other, selectors)]
            for other in chosen:
                del rest[other["metadata"]["name"]]
                if not _selectors(other):
                    yield from _own_rules(other)
            selecting += chosen


def check_path(user: User, path: str) -> None:
    """Reject a path outside of resources for a user without access to it."""
    known = any(path == each or path.startswith(f"{each}/") for each in DISCOVERY_PATHS)
    if not known and not user.is_superuser:
        message = f'forbidden: User "{user.name}" cannot get path "{path}"'
        raise StatusError(403, "Forbidden", message, {})


def impersonate(user: User, wanted: User) -> User:
    """Return the impersonated user; only the owner may impersonate others."""
    if not user.is_superuser:
        raise _forbidden(user, AccessAttributes("impersonate", "", "users", name=wanted.name))
    return wanted


def _forbidden(user: User, attributes: AccessAttributes) -> StatusError:
    where = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    message = (
        f'User "{user.name}" cannot {attributes.verb} resource "{attributes.resource}" '
        f'in API group "{attributes.group}" {where}'
    )
    resource = Resource(attributes.group, "", attributes.resource.partition("/")[0], "")
    return status.forbidden(resource, attributes.name, message)


def _is_subject(user: User, subject: Mapping[str, Any], namespace: str) -> bool:
    """Return whether a binding, in a namespace or in none, names the user."""
    name = subject.get("name", "")
    match subject.get("kind"):
        case "ServiceAccount":
            return user.account == ObjectKey(subject.get("namespace") or namespace, name)
        case "Group":
            return name in user.groups
        case "User":
            return bool(name == user.name)
        case _:
            return False


def _own_rules(role: JSON) -> list[JSON]:
    return role.get("rules") or []


def _selectors(role: JSON) -> list[JSON]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _is_selected(role: JSON, selectors: list[JSON]) -> bool:
    labels = role["metadata"].get("labels") or {}
    return any(selects(selector, labels) for selector in selectors)


def _selected_name(selector: str) -> str:
    for clause in selector.split(","):
        field, _, value = clause.replace("==", "=").partition("=")
        if field.strip() == "metadata.name":
            return value.strip()
    return ""

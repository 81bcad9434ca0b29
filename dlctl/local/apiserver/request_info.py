"""The verb, resource, namespace and name of a request, from its path and method.

Verbs are named as in the real server's audit log. Whether they are served is not decided here.
"""

import attrs

from dlctl.api.meta import ObjectKey

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@attrs.frozen
class RequestInfo:
    """The part of the API that a path names; unnamed parts are empty."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def verb(self, method: str, *, watch: bool) -> str:
        """Return the verb, or "" for a method that the path does not have."""
        verbs = _OBJECT_VERBS if self.name else _COLLECTION_VERBS
        verb = verbs.get("GET" if method == "HEAD" else method, "")
        return "watch" if verb == "list" and watch else verb


def parse_path(path: str) -> RequestInfo | None:
    """Return what the path names, or None if it is not the path of a resource."""
    parts = path.strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not all(rest):
        return None
    namespace = ""
    # A namespace and its own subresources are objects, not scopes.
    inside = len(rest) > 2 and rest[2] not in ("status", "finalize")
    if rest[0] == "namespaces" and inside:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return RequestInfo(group, version, plural, namespace, name, subresource)

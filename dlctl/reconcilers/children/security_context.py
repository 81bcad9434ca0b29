"""Puts the init containers that dlctl adds under the security restrictions of the user's program.

Otherwise Pod Security admission rejects a pod whose template complies with it. Pure.
"""

from typing import Final

from dlctl.api.json_types import JSON, ReadOnlyJSON

# They give a program more than it has by default.
_GRANTS: Final = frozenset({"privileged", "procMount"})


def with_security_context(pod_spec: JSON, given: ReadOnlyJSON, training: str) -> JSON:
    """Return a pod spec whose added init containers have the training container's restrictions.

    ``given`` is the user's, and ``training`` the name of that container. An init container with a
    security context of its own keeps it.
    """
    context = next(
        (
            each.get("securityContext")
            for each in given["containers"]
            if each.get("name") == training
        ),
        None,
    )
    has_user = "runAsUser" in (given.get("securityContext") or {})
    restrictions = _restrictions(context or {}, has_user=has_user)
    if not restrictions or not pod_spec.get("initContainers"):
        return pod_spec
    own = {container.get("name") for container in given.get("initContainers") or ()}
    init = [
        container
        if container.get("name") in own
        else {"securityContext": restrictions, **container}
        for container in pod_spec["initContainers"]
    ]
    return {**pod_spec, "initContainers": init}


def _restrictions(context: ReadOnlyJSON, *, has_user: bool) -> JSON:
    kept = {field: value for field, value in context.items() if field not in _GRANTS}
    if not has_user and "runAsUser" not in kept:
        # The default user of the added containers' images is root: they could not start.
        kept.pop("runAsNonRoot", None)
    capabilities = kept.pop("capabilities", None) or {}
    if capabilities.get("drop"):
        kept["capabilities"] = {"drop": capabilities["drop"]}
    return kept

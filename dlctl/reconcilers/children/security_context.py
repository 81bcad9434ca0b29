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
    program: ReadOnlyJSON = next(
        (each for each in given["containers"] if each.get("name") == training), {}
    )
    own = {container.get("name") for container in given.get("initContainers") or ()}
    pod_user = (given.get("securityContext") or {}).get("runAsUser")

    def restricted(container: JSON) -> JSON:
        context = _restrictions(program.get("securityContext") or {})
        is_own_image = container.get("image") == program.get("image")
        if not is_own_image and context.get("runAsUser", pod_user) is None:
            # The default user of dlctl's images is root: they could not start.
            context.pop("runAsNonRoot", None)
        return {"securityContext": context, **container} if context else container

    init = [
        container if container.get("name") in own else restricted(container)
        for container in pod_spec.get("initContainers") or ()
    ]
    return {**pod_spec, "initContainers": init} if init else pod_spec


def _restrictions(context: ReadOnlyJSON) -> JSON:
    kept = {field: value for field, value in context.items() if field not in _GRANTS}
    capabilities = kept.pop("capabilities", None) or {}
    if capabilities.get("drop"):
        kept["capabilities"] = {"drop": capabilities["drop"]}
    return kept

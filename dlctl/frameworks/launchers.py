"""What launchers get that start programs in pods of their own job: an account, rights, kubectl.

Pure, and the same for all frameworks that have launchers; what their pods run is not known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.api.companions import Companion
from dlctl.api.meta import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, ObjectKey

JSON = Mapping[str, Any]
KUBECTL_PATH: Final = "/opt/kube"
# What init containers of ours ask for; it is training-operator's and et-operator's.
INIT_SIZE: Final = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
_LOOKING: Final = ("get", "list", "watch")
# What roles of launchers hand on, of which the controller has not all by its own work.
GRANTED: Final = (*(("", "pods", verb) for verb in _LOOKING), ("", "pods/exec", "create"))


def rules(entered: Sequence[str]) -> list[JSON]:
    """Return the rules of who looks for pods, and runs programs in those that are named."""
    found: list[JSON] = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(_LOOKING)}]
    if entered:
        # A rule without names would be one for all pods of the namespace.
        execs = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
        found.append({**execs, "resourceNames": list(entered)})
    return found


def rights(
    job: ObjectKey, name: str, rules: Sequence[JSON], *, account: str = ""
) -> Iterator[Companion]:
    """Yield a role of this name and who has it: an account of the user's, else one of the name.

    In this order: nobody can bind a role that is not there.
    """
    metadata = {"labels": {"app": job.name}}
    account = account or name
    yield Companion(ROLES, name, {"metadata": metadata, "rules": list(rules)})
    if account == name:
        yield Companion(SERVICE_ACCOUNTS, name, {"metadata": metadata})
    subject = {"kind": "ServiceAccount", "name": account, "namespace": job.namespace}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": name}
    binding = {"metadata": metadata, "subjects": [subject], "roleRef": role}
    yield Companion(ROLE_BINDINGS, name, binding)


def delivery(image: str, namespace: str, mounts: Sequence[JSON]) -> JSON:
    """Return the init container that brings kubectl; one of the mounts takes it."""
    environment = {"TARGET_DIR": KUBECTL_PATH, "NAMESPACE": namespace}
    return {
        "name": "kubectl-delivery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"limits": dict(INIT_SIZE), "requests": dict(INIT_SIZE)},
        "volumeMounts": list(mounts),
    }


def extended(given: JSON, **lists: Sequence[JSON]) -> JSON:
    """Return an object with items added to lists of its own, at their ends."""
    longer = {name: [*(given.get(name) or []), *items] for name, items in lists.items()}
    return {**given, **longer}


def mounted(container: JSON, *mounts: JSON) -> JSON:
    """Return a container with these mounts, but where the user has one of their own."""
    taken = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    free = [mount for mount in mounts if mount["mountPath"] not in taken]
    return extended(container, volumeMounts=free) if free else container

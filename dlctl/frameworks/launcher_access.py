"""What launchers get that start programs in pods of their own job: an account, rights, kubectl.

Pure, and the same for all frameworks that have launchers; what their pods run is not known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.api.dependents import Dependent
from dlctl.api.meta import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, ObjectKey

JSON = Mapping[str, Any]
KUBECTL_PATH: Final = "/opt/kube"
# What init containers of ours ask for; it is training-operator's and et-operator's.
INIT_RESOURCES: Final = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
_READ_VERBS: Final = ("get", "list", "watch")
# What roles of launchers hand on, of which the controller has not all by its own work.
DELEGATED_RULES: Final = (
    *(("", "pods", verb) for verb in _READ_VERBS),
    ("", "pods/exec", "create"),
)


def role_rules(exec_pods: Sequence[str]) -> list[JSON]:
    """Return the rules of who looks for pods, and runs programs in those that are named."""
    result: list[JSON] = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(_READ_VERBS)}]
    if exec_pods:
        # A rule without names would be one for all pods of the namespace.
        execs = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
        result.append({**execs, "resourceNames": list(exec_pods)})
    return result


def rbac(
    job: ObjectKey, name: str, rules: Sequence[JSON], *, service_account: str = ""
) -> Iterator[Dependent]:
    """Yield a role of this name and who has it: an account of the user's, else one of the name.

    In this order: nobody can bind a role that is not there.
    """
    metadata = {"labels": {"app": job.name}}
    service_account = service_account or name
    yield Dependent(ROLES, name, {"metadata": metadata, "rules": list(rules)})
    if service_account == name:
        yield Dependent(SERVICE_ACCOUNTS, name, {"metadata": metadata})
    subject = {"kind": "ServiceAccount", "name": service_account, "namespace": job.namespace}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": name}
    binding = {"metadata": metadata, "subjects": [subject], "roleRef": role}
    yield Dependent(ROLE_BINDINGS, name, binding)


def kubectl_init_container(image: str, namespace: str, mounts: Sequence[JSON]) -> JSON:
    """Return the init container that brings kubectl; one of the mounts takes it."""
    environment = {"TARGET_DIR": KUBECTL_PATH, "NAMESPACE": namespace}
    return {
        "name": "kubectl-delivery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"limits": dict(INIT_RESOURCES), "requests": dict(INIT_RESOURCES)},
        "volumeMounts": list(mounts),
    }


def append_items(given: JSON, **lists: Sequence[JSON]) -> JSON:
    """Return an object with items added to lists of its own, at their ends."""
    longer = {name: [*(given.get(name) or []), *items] for name, items in lists.items()}
    return {**given, **longer}


def add_mounts(container: JSON, *mounts: JSON) -> JSON:
    """Return a container with these mounts, but where the user has one of their own."""
    used_paths = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    free = [mount for mount in mounts if mount["mountPath"] not in used_paths]
    return append_items(container, volumeMounts=free) if free else container

"""Access for launchers that start programs in pods of their own job: account, role and kubectl.

Pure, and common to all frameworks with launchers.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, ObjectKey
from dlctl.api.objects.dependents import Dependent
from dlctl.options import Options

_DEFAULT_OPTIONS: Final = Options()
KUBECTL_PATH: Final = "/opt/kube"
_INIT_RESOURCES: Final = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
_READ_VERBS: Final = ("get", "list", "watch")
# Rights that launchers' roles grant; the controller needs some of them only to be able to grant
# them.
DELEGATED_RULES: Final = (
    *(("", "pods", verb) for verb in _READ_VERBS),
    ("", "pods/exec", "create"),
)


@attrs.frozen
class KubectlDelivery:
    """The administrator's setting for launchers that need kubectl: the image that has it."""

    image: str = _DEFAULT_OPTIONS.mpi_kubectl_delivery_image


def role_rules(exec_pods: Sequence[str]) -> list[ReadOnlyJSON]:
    """Return the rules to find pods, and to run programs in the named ones."""
    result: list[ReadOnlyJSON] = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": list(_READ_VERBS)}
    ]
    if exec_pods:
        # A rule without resourceNames would apply to all pods of the namespace.
        execs = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
        result.append({**execs, "resourceNames": list(exec_pods)})
    return result


def rbac(
    job: ObjectKey,
    name: str,
    rules: Sequence[ReadOnlyJSON],
    *,
    service_account: str = "",
    account_may_exist: bool = False,
) -> Iterator[Dependent]:
    """Yield a role of this name, its account and the binding; a given account may exist.

    The role comes first: a binding requires it. Namespaces get their default account from
    Kubernetes.
    """
    metadata = {"labels": {"app": job.name}}
    is_named, service_account = bool(service_account), service_account or name
    yield Dependent(ROLES, name, {"metadata": metadata, "rules": list(rules)})
    if service_account != "default":
        yield Dependent(
            SERVICE_ACCOUNTS,
            service_account,
            {"metadata": metadata},
            may_exist=account_may_exist,
            may_be_shared=is_named,
        )
    subject = {"kind": "ServiceAccount", "name": service_account, "namespace": job.namespace}
    role = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": name}
    binding = {"metadata": metadata, "subjects": [subject], "roleRef": role}
    yield Dependent(ROLE_BINDINGS, name, binding)


def init_resources() -> ReadOnlyJSON:
    """Return the resources of dlctl's init containers, as training-operator and et-operator do."""
    return {"limits": dict(_INIT_RESOURCES), "requests": dict(_INIT_RESOURCES)}


def kubectl_init_container(
    image: str, namespace: str, mounts: Sequence[ReadOnlyJSON]
) -> ReadOnlyJSON:
    """Return the init container that provides kubectl in one of the mounts."""
    environment = {"TARGET_DIR": KUBECTL_PATH, "NAMESPACE": namespace}
    return {
        "name": "kubectl-delivery",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": init_resources(),
        "volumeMounts": list(mounts),
    }

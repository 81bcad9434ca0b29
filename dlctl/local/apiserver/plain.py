"""Built-in and custom resources with no rules of their own, until they have some."""

from dlctl.api.meta import (
    CONFIG_MAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from dlctl.local.apiserver.changes import JSON, Change
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.storage import Storage


class PlainStrategy:
    """Takes everything as it is."""

    def admit_create(self, obj: JSON) -> JSON:
        return obj

    def admit_update(self, old: JSON, new: JSON) -> JSON:
        return new

    def admit_status(self, old: JSON, new: JSON) -> JSON:
        return new


class PlainPods(PlainStrategy):
    """Begins the life of a pod."""

    def admit_create(self, obj: JSON) -> JSON:
        spec = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30} | (
            obj.get("spec") or {}
        )
        return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


_RBAC = "rbac.authorization.k8s.io"
_PLAIN = (
    NAMESPACES,
    SERVICES,
    CRDS,
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
)
_STATELESS = (
    EVENTS,
    CONFIG_MAPS,
    SECRETS,
    LEASES,
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
)
_POD_KEYS = {
    "spec.containers": "name",
    "spec.initContainers": "name",
    "spec.volumes": "name",
    "spec.containers.env": "name",
    "spec.containers.ports": "containerPort",
    "spec.containers.volumeMounts": "mountPath",
    "spec.imagePullSecrets": "name",
    "status.conditions": "type",
}


def resources() -> list[ServedResource]:
    served = [ServedResource(r, r.kind.lower(), PlainStrategy(), has_status=True) for r in _PLAIN]
    served += [ServedResource(r, r.kind.lower(), PlainStrategy()) for r in _STATELESS]
    return [
        *served,
        ServedResource(
            PODS, "pod", PlainPods(), has_status=True, graceful=True, merge_keys=_POD_KEYS
        ),
    ]


def watch_crds(storage: Storage, registry: ResourceRegistry) -> None:
    def sync(change: Change) -> None:
        if change.table != (CRDS.group, CRDS.plural) or change.new is None:
            return
        crd = change.new.decoded(CRDS)
        spec = crd["spec"]
        for version in spec["versions"]:
            resource = Resource(
                spec["group"],
                version["name"],
                spec["names"]["plural"],
                spec["names"]["kind"],
                spec.get("scope") != "Cluster",
            )
            registry.add(
                ServedResource(
                    resource,
                    resource.kind.lower(),
                    PlainStrategy(),
                    has_status="status" in (version.get("subresources") or {}),
                )
            )
        status = {
            "conditions": [
                {"type": "Established", "status": "True"},
                {"type": "NamesAccepted", "status": "True"},
            ],
            "acceptedNames": spec["names"],
            "storedVersions": [spec["versions"][0]["name"]],
        }
        if crd.get("status") != status:
            storage.update(CRDS, change.new, crd | {"status": status})

    storage.observers.append(sync)

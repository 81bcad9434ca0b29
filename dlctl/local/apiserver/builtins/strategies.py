"""The built-in resources: names, defaults, validation and columns.

Only those that jobs, their operator and kubectl need. Workload controllers other than Jobs, such as
Deployments, are not served: nothing would act on them.
"""

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from dlctl.api import meta
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.objects.nodes import NODES
from dlctl.local.apiserver import status
from dlctl.local.apiserver.builtins.autoscalers import autoscaler_errors, default_autoscaler
from dlctl.local.apiserver.builtins.core_kinds import (
    config_map_errors,
    config_map_update_errors,
    default_claim,
    default_event,
    default_secret,
    event_errors,
    lease_errors,
    secret_errors,
    secret_update_errors,
)
from dlctl.local.apiserver.builtins.jobs import (
    default_job,
    default_labels,
    default_status,
    with_selector,
)
from dlctl.local.apiserver.builtins.pod_defaults import default_pod
from dlctl.local.apiserver.builtins.services import (
    ServiceDefaulter,
    service_errors,
    service_update_errors,
)
from dlctl.local.apiserver.printing import columns
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.serialization.builtin_types import merge_keys
from dlctl.local.apiserver.serialization.typed_decoding import TypedDecoder
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.job_status import job_status_errors
from dlctl.local.apiserver.validation.job_updates import job_update_errors
from dlctl.local.apiserver.validation.jobs import job_errors
from dlctl.local.apiserver.validation.pod_updates import pod_update_errors
from dlctl.local.apiserver.validation.pods import pod_errors
from dlctl.local.apiserver.validation.roles import (
    binding_update_errors,
    cluster_role_binding_errors,
    cluster_role_errors,
    default_binding,
    role_binding_errors,
    role_errors,
)

FieldErrors = Iterable[FieldError]


@attrs.frozen
class BuiltinStrategy:
    """Accepts what the types of a built-in kind allow; the functions add what is specific."""

    resource: Resource
    # Modifies a new object, or an update of one, in place.
    default: Callable[[JSON], None] = lambda _obj: None
    # Returns a new object with what the server adds once its field managers are known.
    completed: Callable[[JSON], JSON] = lambda obj: obj
    default_update: Callable[[JSON, JSON], None] = lambda _old, _new: None
    errors: Callable[[JSON], FieldErrors] = lambda _obj: ()
    update_errors: Callable[[JSON, JSON], FieldErrors] = lambda _old, _new: ()
    # Modifies an update of the status in place.
    default_status: Callable[[JSON], None] = lambda _obj: None
    status_errors: Callable[[JSON, JSON], FieldErrors] = lambda _old, _new: ()

    def unknown_fields(self, obj: JSON) -> list[str]:
        """Return the paths of the fields that will be dropped."""
        decoder = TypedDecoder(self.resource)
        decoder.decode(obj)
        return decoder.unknown

    def admit_create(self, obj: JSON) -> JSON:
        decoded = TypedDecoder(self.resource).decode(obj)
        self.default(decoded)
        self._reject(decoded, self.errors(self.completed(decoded)))
        return decoded

    def admit_update(self, old: JSON, new: JSON) -> JSON:
        decoded = TypedDecoder(self.resource).decode(new)
        self.default_update(old, decoded)
        self.default(decoded)
        self._reject(decoded, [*self.errors(decoded), *self.update_errors(old, decoded)])
        return decoded

    def admit_status(self, old: JSON, new: JSON) -> JSON:
        decoded = TypedDecoder(self.resource).decode(new)
        kept = {key: value for key, value in old.items() if key not in ("metadata", "status")}
        result = kept | {"metadata": decoded["metadata"]}
        result |= {"status": decoded["status"]} if "status" in decoded else {}
        self.default_status(result)
        self._reject(result, self.status_errors(old, result))
        return result

    def _reject(self, obj: JSON, errors: FieldErrors) -> None:
        if found := list(errors):
            raise status.invalid(self.resource, obj["metadata"].get("name", ""), found)


_ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
_PRIORITIES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
_WITH_STATUS: Final = frozenset(
    {
        "pods",
        "services",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "horizontalpodautoscalers.autoscaling",
        "jobs.batch",
        "poddisruptionbudgets.policy",
    }
)
_SHORT_NAMES: Final = {
    "pods": ("po",),
    "services": ("svc",),
    "endpoints": ("ep",),
    "events": ("ev",),
    "namespaces": ("ns",),
    "nodes": ("no",),
    "configmaps": ("cm",),
    "serviceaccounts": ("sa",),
    "persistentvolumeclaims": ("pvc",),
    "horizontalpodautoscalers.autoscaling": ("hpa",),
    "poddisruptionbudgets.policy": ("pdb",),
    "priorityclasses.scheduling.k8s.io": ("pc",),
}
# What ``kubectl get all`` shows.
_IN_ALL: Final = ("pods", "services", "jobs.batch", "horizontalpodautoscalers.autoscaling")
_SINGULARS: Final = {"endpoints": "endpoints"}


def register(registry: ResourceRegistry) -> None:
    """Serve all built-in resources except CRDs (see ``crds.controller``)."""
    for strategy in _strategies():
        registry.add(_served(strategy))


def _served(strategy: BuiltinStrategy) -> ServedResource:
    resource = strategy.resource
    name = resource.group_resource
    return ServedResource(
        resource=resource,
        singular=_SINGULARS.get(name, resource.kind.lower()),
        strategy=strategy,
        short_names=_SHORT_NAMES.get(name, ()),
        categories=("all",) if name in _IN_ALL else (),
        has_status=name in _WITH_STATUS,
        merge_keys=merge_keys(resource.kind),
        graceful=name == "pods",
        columns=columns.COLUMNS[name],
    )


def _strategies() -> list[BuiltinStrategy]:
    services = ServiceDefaulter()
    return [
        BuiltinStrategy(
            meta.PODS, default=default_pod, errors=pod_errors, update_errors=pod_update_errors
        ),
        BuiltinStrategy(
            meta.SERVICES,
            default=services.default,
            default_update=services.keep_addresses,
            errors=service_errors,
            update_errors=service_update_errors,
        ),
        BuiltinStrategy(_ENDPOINTS),
        BuiltinStrategy(meta.EVENTS, default=default_event, errors=event_errors),
        BuiltinStrategy(meta.NAMESPACES),
        BuiltinStrategy(NODES),
        BuiltinStrategy(
            meta.CONFIG_MAPS, errors=config_map_errors, update_errors=config_map_update_errors
        ),
        BuiltinStrategy(
            meta.SECRETS,
            default=default_secret,
            errors=secret_errors,
            update_errors=secret_update_errors,
        ),
        BuiltinStrategy(meta.SERVICE_ACCOUNTS),
        BuiltinStrategy(meta.LEASES, errors=lease_errors),
        BuiltinStrategy(_CLAIMS, default=default_claim),
        BuiltinStrategy(_AUTOSCALERS, default=default_autoscaler, errors=autoscaler_errors),
        BuiltinStrategy(_BUDGETS),
        BuiltinStrategy(
            meta.BATCH_JOBS,
            default=default_job,
            default_update=default_labels,
            default_status=default_status,
            completed=with_selector,
            errors=job_errors,
            update_errors=job_update_errors,
            status_errors=job_status_errors,
        ),
        BuiltinStrategy(_PRIORITIES),
        BuiltinStrategy(meta.ROLES, errors=role_errors),
        BuiltinStrategy(
            meta.ROLE_BINDINGS,
            default=default_binding,
            errors=role_binding_errors,
            update_errors=binding_update_errors,
        ),
        BuiltinStrategy(meta.CLUSTER_ROLES, errors=cluster_role_errors),
        BuiltinStrategy(
            meta.CLUSTER_ROLE_BINDINGS,
            default=default_binding,
            errors=cluster_role_binding_errors,
            update_errors=binding_update_errors,
        ),
    ]

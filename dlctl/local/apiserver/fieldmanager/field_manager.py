"""Field management of one request: reads and writes ``metadata.managedFields`` of its object."""

from collections.abc import Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import LAST_APPLIED_ANNOTATION
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.fieldmanager import managers
from dlctl.local.apiserver.fieldmanager.field_sets import FieldSet
from dlctl.local.apiserver.fieldmanager.managers import Managed, ManagerIdentifier
from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchema
from dlctl.local.apiserver.fieldmanager.tracking import Tracker
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization.nesting_depth import decode_json

_KEY: Final = "managedFields"
# The manager that takes over the fields of its earlier client-side apply.
_KUBECTL: Final = "kubectl"
_RESET: Final[Sequence[list[JSON]]] = ([], [{}])
_ROLE_REF: Final = {"apiGroup": "", "kind": "", "name": ""}
# Fields that the real server writes even if they are empty, so that nobody adds them.
_BLANK: Final[dict[str, JSON]] = {
    "ClusterRole": {"rules": None},
    "ClusterRoleBinding": {"roleRef": _ROLE_REF},
    "CustomResourceDefinition": {
        "spec": {"group": "", "names": {"kind": "", "plural": ""}, "scope": "", "versions": None}
    },
    "Event": {
        "eventTime": None,
        "firstTimestamp": None,
        "involvedObject": {},
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    "HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 0, "scaleTargetRef": {"kind": "", "name": ""}},
        "status": {"currentMetrics": None, "desiredReplicas": 0},
    },
    "Job": {"spec": {"template": {"metadata": {}, "spec": {"containers": None}}}, "status": {}},
    "Lease": {"spec": {}},
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Pod": {"spec": {"containers": None}, "status": {}},
    "PodDisruptionBudget": {"spec": {}, "status": {}},
    "PriorityClass": {"value": 0},
    "Role": {"rules": None},
    "RoleBinding": {"roleRef": _ROLE_REF},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
}


@attrs.frozen
class FieldManager:
    """A manager that writes to one endpoint, at one time."""

    tracker: Tracker
    manager: ManagerIdentifier
    now: str

    def track(self, old: JSON, new: JSON) -> JSON:
        """Return the new object with its managers; ``old`` is empty if there was none."""
        managed = self._former(old, new)
        if managed or not old:
            managed = self.tracker.after_update(managed, old, new, self.manager, self.now)
        return _with(new, managed)

    def apply(self, live: JSON, config: JSON, *, force: bool) -> JSON:
        """Return the object with a configuration applied; ``live`` is empty if there was none."""
        meta = config.get("metadata")
        if isinstance(meta, dict) and _KEY in meta:
            raise status.bad_request("metadata.managedFields must be nil")
        managed = _stored(live)
        if live and not managed:
            managed = self.tracker.before_first_apply(live, self.manager.api_version, self.now)
        merged, managed = self.tracker.after_apply(
            managed,
            _with(live, ()) if live else {},
            config,
            self.manager,
            self.now,
            allowed=None if force else self._allowed_conflicts(live),
        )
        return _with(self._with_last_applied(merged, config), managed)

    def _former(self, old: JSON, new: JSON) -> Managed:
        """Return the managers before a write, which may also set them, or reset them."""
        given = new["metadata"].get(_KEY)
        if self.manager.subresource or given is None or given == old.get("metadata", {}).get(_KEY):
            return _stored(old)
        if given in _RESET:
            return ()
        sent = managers.decode_sent(given)
        return _stored(old) if sent is None else sent

    def _allowed_conflicts(self, live: JSON) -> FieldSet:
        """Return the fields that kubectl has applied by itself, and nobody has changed since."""
        text = _annotations(live).get(LAST_APPLIED_ANNOTATION)
        if self.manager.name != _KUBECTL or not text:
            return {}
        try:
            last = decode_json(text)
        except msgspec.DecodeError:
            return {}
        if not isinstance(last, dict):
            return {}
        return self.tracker.unchanged_fields(last, live)

    def _with_last_applied(self, obj: JSON, config: JSON) -> JSON:
        if self.manager.name != _KUBECTL or LAST_APPLIED_ANNOTATION not in _annotations(obj):
            return obj
        text = msgspec.json.encode(config, order="deterministic").decode() + "\n"
        annotations = _annotations(obj) | {LAST_APPLIED_ANNOTATION: text}
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def tracker_of(served: ServedResource, subresource: str, schema: MergeSchema) -> Tracker:
    """Return the rules for one endpoint of a resource."""
    resource, blank = served.resource, dict[str, Any]()
    if resource_traits.is_built_in(resource):
        blank = {"metadata": {}} | _BLANK.get(resource.kind, {})
    return Tracker(schema, _ignored(served, subresource), blank)


def _ignored(served: ServedResource, subresource: str) -> FieldSet:
    if subresource == "status":
        owners: FieldSet = {"f:deletionTimestamp": {}, "f:ownerReferences": {}}
        built_in = resource_traits.is_built_in(served.resource)
        return {"f:spec": {}, "f:metadata": owners if built_in else {}}
    return {"f:status": {}} if served.has_status else {}


def _stored(obj: JSON) -> Managed:
    return managers.decode(obj.get("metadata", {}).get(_KEY, ()))


def _with(obj: JSON, managed: Managed) -> JSON:
    meta = {name: value for name, value in obj["metadata"].items() if name != _KEY}
    entries = managers.encode(managed)
    return {**obj, "metadata": meta | ({_KEY: entries} if entries else {})}


def _annotations(obj: JSON) -> JSON:
    return (obj.get("metadata") or {}).get("annotations") or {}

"""Computed cells of built-in kinds; those of pods, jobs and autoscalers have modules of their own.

Each function returns cells by column name; all kinds have an age, and other columns are JSONPaths.
"""

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.printing.ages import age_of
from dlctl.local.apiserver.printing.autoscaler_rows import autoscaler_cells
from dlctl.local.apiserver.printing.job_rows import job_cells

_NONE: Final = "<none>"
_UNSET: Final = "<unset>"
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _service(obj: JSON, _now: datetime.datetime) -> JSON:
    spec = obj.get("spec", {})
    ports = ",".join(_port(each) for each in spec.get("ports", []))
    external = spec.get("externalIPs") or []
    if spec.get("type") == "ExternalName":
        external = [spec.get("externalName", "")]
    selector = spec.get("selector") or {}
    return {
        "Type": spec.get("type", "ClusterIP"),
        "Cluster-IP": next(iter(spec.get("clusterIPs", [])), None)
        or spec.get("clusterIP")
        or _NONE,
        "External-IP": ",".join(external)
        or ("<pending>" if spec.get("type") == "LoadBalancer" else _NONE),
        "Port(s)": ports or _NONE,
        "Selector": ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or _NONE,
    }


def _port(port: JSON) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _event(obj: JSON, now: datetime.datetime) -> JSON:
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or first
    series = obj.get("series") or {}
    count = series.get("count") or obj.get("count") or 1
    seen = age_of(series.get("lastObservedTime") or last, now)
    involved, source = obj.get("involvedObject", {}), obj.get("source", {})
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    return {
        "Last Seen": seen,
        "Type": obj.get("type", ""),
        "Reason": obj.get("reason", ""),
        "Object": f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        "Subobject": involved.get("fieldPath", ""),
        "Source": ", ".join(part for part in (component, host) if part),
        "Message": obj.get("message", "").strip(),
        "First Seen": age_of(first, now),
        "Count": count,
        "Name": obj["metadata"]["name"],
    }


def _node(obj: JSON, _now: datetime.datetime) -> JSON:
    status = obj.get("status", {})
    states = {each.get("type"): each.get("status") for each in status.get("conditions", [])}
    ready = states.get("Ready")
    words = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if obj.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    info = status.get("nodeInfo", {})
    addresses = {each.get("type"): each.get("address") for each in status.get("addresses", [])}
    return {
        "Status": ",".join(words),
        "Roles": ",".join(roles) or _NONE,
        "Version": info.get("kubeletVersion", ""),
        "Internal-IP": addresses.get("InternalIP") or _NONE,
        "External-IP": addresses.get("ExternalIP") or _NONE,
        "OS-Image": info.get("osImage") or "<unknown>",
        "Kernel-Version": info.get("kernelVersion") or "<unknown>",
        "Container-Runtime": info.get("containerRuntimeVersion") or "<unknown>",
    }


def _config_map(obj: JSON, _now: datetime.datetime) -> JSON:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return {"Data": count}


def _secret(obj: JSON, _now: datetime.datetime) -> JSON:
    return {
        "Type": obj.get("type", "Opaque"),
        "Data": len(obj.get("data") or {}),
    }


def _namespace(obj: JSON, _now: datetime.datetime) -> JSON:
    return {"Status": obj.get("status", {}).get("phase", "")}


def _service_account(obj: JSON, _now: datetime.datetime) -> JSON:
    return {"Secrets": len(obj.get("secrets") or [])}


def _lease(obj: JSON, _now: datetime.datetime) -> JSON:
    return {"Holder": obj.get("spec", {}).get("holderIdentity", "")}


def _crd(obj: JSON, _now: datetime.datetime) -> JSON:
    return {"Created At": obj["metadata"].get("creationTimestamp", "")}


def _endpoints(obj: JSON, _now: datetime.datetime) -> JSON:
    pairs = [
        f"{address.get('ip', '')}:{port.get('port', 0)}"
        for subset in obj.get("subsets") or []
        for port in subset.get("ports") or []
        for address in subset.get("addresses") or []
    ]
    shown = ",".join(pairs[:3])
    more = f" + {len(pairs) - 3} more..." if len(pairs) > 3 else ""
    return {"Endpoints": f"{shown}{more}" or _NONE}


def _claim(obj: JSON, _now: datetime.datetime) -> JSON:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    volume = spec.get("volumeName", "")
    modes = [_ACCESS_MODES.get(mode, mode) for mode in status.get("accessModes") or ()]
    phase = status.get("phase", "")
    return {
        "Status": "Terminating" if obj["metadata"].get("deletionTimestamp") else phase,
        "Volume": volume,
        "Capacity": (status.get("capacity") or {}).get("storage", "0") if volume else "",
        "Access Modes": ",".join(modes) if volume else "",
        "StorageClass": spec.get("storageClassName", ""),
        "VolumeAttributesClass": spec.get("volumeAttributesClassName", _UNSET),
        "VolumeMode": spec.get("volumeMode", _UNSET),
    }


def _role_binding(obj: JSON, _now: datetime.datetime) -> JSON:
    role = obj.get("roleRef", {})
    return {"Role": f"{role.get('kind')}/{role.get('name')}"}


def _budget(obj: JSON, _now: datetime.datetime) -> JSON:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return {
        "Min Available": str(spec.get("minAvailable", "N/A")),
        "Max Unavailable": str(spec.get("maxUnavailable", "N/A")),
        "Allowed Disruptions": status.get("disruptionsAllowed", 0),
    }


CELLS: Final[Mapping[str, Callable[[JSON, datetime.datetime], Mapping[str, Any]]]] = {
    "services": _service,
    "events": _event,
    "jobs.batch": job_cells,
    "horizontalpodautoscalers.autoscaling": autoscaler_cells,
    "nodes": _node,
    "namespaces": _namespace,
    "configmaps": _config_map,
    "secrets": _secret,
    "serviceaccounts": _service_account,
    "endpoints": _endpoints,
    "persistentvolumeclaims": _claim,
    "poddisruptionbudgets.policy": _budget,
    "rolebindings.rbac.authorization.k8s.io": _role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_binding,
    "leases.coordination.k8s.io": _lease,
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
}

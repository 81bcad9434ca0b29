"""Defaults of pods: those of the API and of admission.

In place and idempotent. The token volume of service accounts is omitted: nothing here would fill
it.
"""

from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON

_TOLERATION_S: Final = 300
_FILE_MODE: Final = 0o644
_TOKEN_S: Final = 3600


def default_pod(pod: JSON) -> None:
    """Set the defaults of the spec, and of the status if there is none."""
    spec = pod.setdefault("spec", {})
    default_template_spec(spec)
    _default_pod_spec(spec)
    status = pod.setdefault("status", {})
    status.setdefault("phase", "Pending")
    status.setdefault("qosClass", qos_class(spec))


def default_template_spec(spec: JSON) -> None:
    """Set the defaults of a pod's spec that it also has as a template."""
    defaults: JSON = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    # The deprecated name of the same field.
    if account := spec.get("serviceAccountName", spec.get("serviceAccount")):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes", ()):
        _default_volume(volume)


def _default_pod_spec(spec: JSON) -> None:
    defaults: JSON = {
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    _add_default_tolerations(spec)
    for container in containers(spec):
        _default_requests(container["resources"])
        if spec.get("hostNetwork"):
            _default_host_ports(container)


def containers(spec: JSON) -> Iterator[JSON]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field, ())


def qos_class(spec: JSON) -> str:
    """Return the quality-of-service class for memory and CPU."""
    guaranteed, any_ = True, False
    for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        for name in ("cpu", "memory"):
            any_ |= name in limits or name in requests
            guaranteed &= name in limits and requests.get(name, limits[name]) == limits[name]
    if not any_:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _add_default_tolerations(spec: JSON) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(each.get("key", key) == key for each in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_S,
                }
            )


def _default_container(container: JSON) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for env in container.get("env", ()):
        field = env.get("valueFrom", {}).get("fieldRef")
        if field is not None:
            field.setdefault("apiVersion", "v1")
        amount = env.get("valueFrom", {}).get("resourceFieldRef")
        if amount is not None:
            amount.setdefault("divisor", "0")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _default_probe(container[name])
    for handler in container.get("lifecycle", {}).values():
        if isinstance(handler, dict):
            _default_handler(handler)


def _default_requests(resources: JSON) -> None:
    if "limits" in resources:
        requests = resources.setdefault("requests", {})
        for name, value in resources["limits"].items():
            requests.setdefault(name, value)


def _default_host_ports(container: JSON) -> None:
    for port in container.get("ports", ()):
        if "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])


def _pull_policy(image: str) -> str:
    name, at, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    latest = tag == "latest" or (not tag and not at)
    return "Always" if latest else "IfNotPresent"


def _default_probe(probe: JSON) -> None:
    defaults = {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    for name, value in defaults.items():
        probe[name] = probe.get(name) or value
    _default_handler(probe)
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_handler(handler: JSON) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: JSON) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for part in (volume, *volume.get("projected", {}).get("sources", ())):
        if "serviceAccountToken" in part:
            part["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_S)
        for item in part.get("downwardAPI", {}).get("items", ()):
            if "fieldRef" in item:
                item["fieldRef"].setdefault("apiVersion", "v1")
            if "resourceFieldRef" in item:
                item["resourceFieldRef"].setdefault("divisor", "0")

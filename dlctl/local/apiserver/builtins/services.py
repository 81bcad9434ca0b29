"""Defaults and validation of Services.

``storage.cluster_ips`` allocates addresses. Node ports are counted up; nothing listens on them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.containers import port_number
from dlctl.local.apiserver.validation.names import dns_label, port_name

_NODE_PORTS: Final = 30000
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_AFFINITIES: Final = ("ClientIP", "None")
_HEADLESS: Final = "None"


@attrs.define
class ServiceDefaulter:
    """Sets defaults of services; each node port is allocated only once."""

    _node_ports: int = 0

    def default(self, service: JSON) -> None:
        """Set the defaults of a new or changed Service in place."""
        spec = service.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports", ()):
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
            if spec["type"] in ("NodePort", "LoadBalancer") and not port.get("nodePort"):
                port["nodePort"] = _NODE_PORTS + self._node_ports
                self._node_ports += 1
        if spec["sessionAffinity"] == "ClientIP":
            spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
        if spec["type"] != "ExternalName":
            _default_addresses(spec)
        service.setdefault("status", {}).setdefault("loadBalancer", {})

    def keep_addresses(self, old: JSON, new: JSON) -> None:
        """Keep the addresses of a Service whose update omits them."""
        before, after = old.get("spec", {}), new.setdefault("spec", {})
        if after.get("type", "ClusterIP") == "ExternalName":
            return
        for name in ("clusterIP", "ipFamilies", "ipFamilyPolicy"):
            if not after.get(name) and name in before:
                after[name] = before[name]
        if not after.get("clusterIPs") and after.get("clusterIP"):
            after["clusterIPs"] = [after["clusterIP"]]
        node_ports = {_port_key(port): port.get("nodePort") for port in before.get("ports", ())}
        if after.get("type") in ("NodePort", "LoadBalancer"):
            for port in after.get("ports", ()):
                kept = node_ports.get(_port_key({"protocol": "TCP", **port}))
                if kept and not port.get("nodePort"):
                    port["nodePort"] = kept


def _default_addresses(spec: JSON) -> None:
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])


def _port_key(port: JSON) -> tuple[str, int]:
    return port.get("protocol", "TCP"), port.get("port", 0)


def service_errors(service: JSON) -> Iterator[FieldError]:
    spec = service.get("spec", {})
    headless = spec.get("clusterIP") == _HEADLESS
    external = spec.get("type") == "ExternalName"
    if spec.get("type") not in _TYPES:
        yield FieldError.unsupported("spec.type", spec.get("type"), _TYPES)
    if not spec.get("ports") and not headless and not external:
        yield FieldError.required("spec.ports")
    if external and not spec.get("externalName"):
        yield FieldError.required("spec.externalName")
    if headless and spec.get("type") in ("NodePort", "LoadBalancer"):
        detail = "may not be set to 'None' for LoadBalancer services"
        if spec["type"] == "NodePort":
            detail = "may not be set to 'None' for NodePort services"
        yield FieldError.invalid("spec.clusterIPs[0]", _HEADLESS, detail)
    if spec.get("sessionAffinity") not in _AFFINITIES:
        yield FieldError.unsupported(
            "spec.sessionAffinity", spec.get("sessionAffinity"), _AFFINITIES
        )
    yield from _ports(spec.get("ports", []))


def _ports(ports: Sequence[JSON]) -> Iterator[FieldError]:
    names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        where = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            yield FieldError.required(f"{where}.name")
        if name:
            for complaint in dns_label(name):
                yield FieldError.invalid(f"{where}.name", name, complaint)
            if name in names:
                yield FieldError.duplicate(f"{where}.name", name)
            names.add(name)
        yield from port_number(port.get("port", 0), f"{where}.port")
        if port.get("protocol") not in _PROTOCOLS:
            yield FieldError.unsupported(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)
        yield from _target(port.get("targetPort"), f"{where}.targetPort")
        key = _port_key(port)
        if key in seen:
            yield FieldError.duplicate(where, {"port": key[1], "protocol": key[0]})
        seen.add(key)


def _target(target: int | str | None, path: str) -> Iterator[FieldError]:
    if isinstance(target, int):
        yield from port_number(target, path)
    elif target:
        for complaint in port_name(target):
            yield FieldError.invalid(path, target, complaint)


def service_update_errors(old: JSON, new: JSON) -> list[FieldError]:
    before, after = old.get("spec", {}), new.get("spec", {})
    if "ExternalName" in (before.get("type"), after.get("type")):
        return []
    kept = before.get("clusterIPs", [])
    if kept and after.get("clusterIPs") != kept:
        detail = "may not change once set"
        return [FieldError.invalid("spec.clusterIPs[0]", after.get("clusterIPs"), detail)]
    return []

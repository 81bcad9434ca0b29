"""Defaults and checks of services, secrets and config maps, by their strategies."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.resources import ResourceRegistry, Strategy
from dlctl.local.apiserver.status import StatusError
from tests.local.apiserver.builtins.admitting import refusals, strategy


def service(**spec: Any) -> JSON:
    return {"kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}


def test_service_gets_its_defaults(services: Strategy) -> None:
    created = services.admit_create(service())

    assert created["spec"] == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert created["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"ports": []}, "spec.ports: Required value", id="no ports"),
        pytest.param(
            {"type": "Magic"},
            'spec.type: Unsupported value: "Magic": supported values: '
            '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
            id="type",
        ),
        pytest.param(
            {"ports": [{"port": 0}]},
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            id="port",
        ),
    ],
)
def test_invalid_service_is_rejected(services: Strategy, spec: JSON, message: str) -> None:
    assert message in refusals(services, service(**spec))


def test_headless_service_needs_no_ports_and_keeps_its_address(services: Strategy) -> None:
    old = services.admit_create(service(clusterIP="None", ports=[]))

    assert services.admit_update(old, service(ports=[]))["spec"]["clusterIPs"] == ["None"]
    with pytest.raises(StatusError, match="may not change once set"):
        services.admit_update(old, service(clusterIP="10.0.0.1"))


def test_string_data_of_a_secret_is_merged_and_encoded(registry: ResourceRegistry) -> None:
    secrets = strategy(registry, "secrets")
    sent = {"metadata": {"name": "s"}, "data": {"a": "YQ=="}, "stringData": {"b": "b"}}

    created = secrets.admit_create(sent)

    assert created["data"] == {"a": "YQ==", "b": "Yg=="}
    assert created["type"] == "Opaque"
    assert "stringData" not in created


def test_immutable_config_map_does_not_change(registry: ResourceRegistry) -> None:
    maps = strategy(registry, "configmaps")
    old = maps.admit_create({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": True})

    with pytest.raises(StatusError, match="field is immutable when `immutable` is set"):
        maps.admit_update(old, {**old, "data": {"a": "2"}})


def test_every_kind_has_columns_and_merge_keys_come_from_its_type(
    registry: ResourceRegistry,
) -> None:
    served = registry.find("", "v1", "pods")
    assert served is not None

    assert all(each.columns for each in registry)
    assert served.merge_keys["spec.containers.volumeMounts"] == "mountPath"
    assert served.merge_keys["spec.containers.ports"] == "containerPort"
    assert served.merge_keys["metadata.finalizers"] == ""

"""Invalid services and events."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import service


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"ports": []},
            (
                '422 Invalid: [FieldValueRequired spec.ports] Service "a" is invalid: '
                "spec.ports: Required value"
            ),
            id="no ports",
        ),
        pytest.param(
            {"type": "Other"},
            (
                '422 Invalid: [FieldValueNotSupported spec.type] Service "a" is invalid: '
                'spec.type: Unsupported value: "Other": supported values: "ClusterIP", '
                '"ExternalName", "LoadBalancer", "NodePort"'
            ),
            id="type",
        ),
        pytest.param(
            {"ports": [{"port": 0}]},
            (
                "422 Invalid: [FieldValueInvalid spec.ports[0].port] [FieldValueInvalid "
                'spec.ports[0].targetPort] Service "a" is invalid: spec.ports[0].port: '
                "Invalid value: 0: must be between 1 and 65535, inclusive, "
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535,"
                " inclusive"
            ),
            id="port",
        ),
        pytest.param(
            {"ports": [{"port": 1}, {"port": 2}]},
            (
                "422 Invalid: [FieldValueRequired spec.ports[0].name] [FieldValueRequired"
                ' spec.ports[1].name] Service "a" is invalid: spec.ports[0].name: '
                "Required value, spec.ports[1].name: Required value"
            ),
            id="ports without names",
        ),
        pytest.param(
            {"ports": [{"port": 1, "name": "A_"}]},
            (
                '422 Invalid: [FieldValueInvalid spec.ports[0].name] Service "a" is '
                'invalid: spec.ports[0].name: Invalid value: "A_": a lowercase RFC 1123 '
                "label must consist of lower case alphanumeric characters or '-', and "
                "must start and end with an alphanumeric character"
            ),
            id="port name",
        ),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
            (
                '422 Invalid: [FieldValueDuplicate spec.ports[1]] Service "a" is invalid:'
                " spec.ports[1]: Duplicate value: OBJECT"
            ),
            id="same port",
        ),
        pytest.param(
            {"sessionAffinity": "Some"},
            (
                '422 Invalid: [FieldValueNotSupported spec.sessionAffinity] Service "a" '
                'is invalid: spec.sessionAffinity: Unsupported value: "Some": supported '
                'values: "ClientIP", "None"'
            ),
            id="affinity",
        ),
        pytest.param(
            {"ports": [{"port": 1, "protocol": "X"}]},
            (
                '422 Invalid: [FieldValueNotSupported spec.ports[0].protocol] Service "a"'
                ' is invalid: spec.ports[0].protocol: Unsupported value: "X": supported '
                'values: "SCTP", "TCP", "UDP"'
            ),
            id="protocol",
        ),
    ],
)
async def test_malformed_service_is_invalid(api: Api, spec: JSON, said: str) -> None:
    answer = await api.post(api.path("services"), service(**spec))
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"spec": {"clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]}},
            (
                '422 Invalid: [FieldValueInvalid spec.clusterIPs[0]] Service "a" is '
                'invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not '
                "change once set"
            ),
            id="given",
        ),
        pytest.param(
            {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
            (
                '422 Invalid: [FieldValueInvalid spec.clusterIPs[0]] Service "a" is '
                'invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change '
                "once set"
            ),
            id="none",
        ),
    ],
)
async def test_change_of_an_address_is_invalid(api: Api, change: JSON, said: str) -> None:
    await api.create(api.path("services"), service())
    answer = await api.patch(api.path("services", "a"), change)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            {
                "metadata": {"name": "a"},
                "involvedObject": {"namespace": "other"},
                "reason": "x",
                "type": "Normal",
            },
            (
                '422 Invalid: [FieldValueInvalid involvedObject.namespace] Event "a" is '
                'invalid: involvedObject.namespace: Invalid value: "other": does not '
                "match event.namespace"
            ),
            id="namespace",
        ),
    ],
)
async def test_event_of_another_namespace_is_invalid(api: Api, body: object, said: str) -> None:
    answer = await api.post(api.path("events"), body)
    assert api.failure_text(answer) == said

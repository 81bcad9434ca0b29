"""Bodies in protobuf, written by hand as kubectl writes them."""

import pytest

from dlctl.local.apiserver.serialization.protobuf import MEDIA_TYPE, decode
from tests.local.apiserver.raw_client import CONFIG_MAPS, PODS, RawClient, pod


def field(number: int, value: bytes | int | str) -> bytes:
    """Return one encoded field; all numbers and lengths here fit one byte."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    raw = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(raw)]) + raw


def envelope(kind: str, raw: bytes, api_version: str = "v1") -> bytes:
    type_meta = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, type_meta) + field(2, raw) + field(3, "") + field(4, "")


def meta(name: str) -> bytes:
    return field(1, name) + field(2, "") + field(3, "") + field(7, 0) + field(8, b"")


def test_config_map_is_read_without_its_empty_fields() -> None:
    entry = field(2, field(1, "key") + field(2, "value"))

    assert decode(envelope("ConfigMap", field(1, meta("c")) + entry)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "c"},
        "data": {"key": "value"},
    }


def test_bytes_become_base64() -> None:
    entry = field(2, field(1, "key") + field(2, b"\x00\xff"))

    assert decode(envelope("Secret", entry))["data"] == {"key": "AP8="}


def test_ports_of_a_service_are_numbers_or_names() -> None:
    number = field(3, 80) + field(4, field(1, 0) + field(2, 88) + field(3, ""))
    name = field(3, 81) + field(4, field(1, 1) + field(2, 0) + field(3, "http"))
    spec = field(1, number) + field(1, name)

    assert decode(envelope("Service", field(2, spec)))["spec"]["ports"] == [
        {"port": 80, "targetPort": 88},
        {"port": 81, "targetPort": "http"},
    ]


def test_pod_keeps_what_could_be_unset_and_fields_of_messages_inside() -> None:
    limit = field(1, "cpu") + field(2, field(1, "500m"))
    container = field(1, "main") + field(2, "i") + field(8, field(1, limit))
    volume = field(1, "v") + field(2, field(2, field(1, "")))
    # terminationGracePeriodSeconds may be unset, stdin may not.
    spec = field(1, volume) + field(2, container + b"\x80\x01\x00") + field(4, 0)

    assert decode(envelope("Pod", field(1, meta("p")) + field(2, spec)))["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": "500m"}}}],
        "terminationGracePeriodSeconds": 0,
    }


def test_times_of_a_lease_have_microseconds() -> None:
    time = field(1, 60) + bytes([2 << 3, 0xE8, 0x07])
    assert decode(envelope("Lease", field(2, field(4, time))))["spec"] == {
        "renewTime": "1970-01-01T00:01:00.000001Z"
    }


async def test_options_of_a_deletion_are_read(api: RawClient) -> None:
    await api.create(PODS, pod("a", node="n"))
    options = envelope("DeleteOptions", field(1, 0))

    answer = await api.call("DELETE", f"{PODS}/a", options, type_=MEDIA_TYPE)

    assert answer.code == 200
    assert (await api.get(f"{PODS}/a")).code == 404


NEGATIVE = b"\xff" * 9 + b"\x01"


def metadata(raw: bytes) -> bytes:
    return envelope("ConfigMap", field(1, raw))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="no envelope"),
        pytest.param(b"k8s\x00" + field(1, 5), id="number as type"),
        pytest.param(b"k8s\x00" + field(1, field(2, 5)), id="number as kind"),
        pytest.param(envelope("ConfigMap", b"\x0a\x7f"), id="cut off"),
        pytest.param(envelope("ConfigMap", b"\x00\x00"), id="field without a number"),
        pytest.param(envelope("ConfigMap", b"\x08" + b"\xff" * 10), id="number without an end"),
        pytest.param(envelope("ConfigMap", field(1, 5)), id="number as message"),
        pytest.param(envelope("ConfigMap", field(2, 5)), id="number as entry"),
        pytest.param(envelope("ConfigMap", field(2, field(1, 5))), id="number as name"),
        pytest.param(metadata(field(1, 5)), id="number as text"),
        pytest.param(metadata(field(7, "x")), id="text as number"),
        pytest.param(metadata(field(8, field(1, "x"))), id="text as time"),
        pytest.param(metadata(field(8, b"\x08" + b"\xff" * 8 + b"\x7f")), id="time out of range"),
    ],
)
async def test_malformed_protobuf_is_a_bad_request(api: RawClient, body: bytes) -> None:
    answer = await api.call("POST", CONFIG_MAPS, body, type_=MEDIA_TYPE)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_malformed_options_of_a_deletion_are_a_bad_request(api: RawClient) -> None:
    options = envelope("DeleteOptions", field(1, "x"))
    answer = await api.call("DELETE", f"{PODS}/a", options, type_=MEDIA_TYPE)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_time_before_the_epoch_is_read(api: RawClient) -> None:
    lease = field(1, meta("l")) + field(2, field(4, b"\x08" + NEGATIVE))
    body = envelope("Lease", lease, "coordination.k8s.io/v1")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    answer = await api.call("POST", path, body, type_=MEDIA_TYPE)
    assert (answer.code, answer.body["spec"]) == (201, {"renewTime": "1969-12-31T23:59:59.000000Z"})


async def test_text_that_is_not_utf_8_is_replaced(api: RawClient) -> None:
    entry = field(2, field(1, "k") + field(2, b"\xff"))
    body = envelope("ConfigMap", field(1, meta("c")) + entry)
    answer = await api.call("POST", CONFIG_MAPS, body, type_=MEDIA_TYPE)
    assert (answer.code, answer.body["data"]) == (201, {"k": "\ufffd"})


async def test_namespace_is_created_from_protobuf(api: RawClient) -> None:
    body = envelope("Namespace", field(1, meta("n")) + field(2, b"") + field(3, field(1, "")))

    answer = await api.call("POST", "/api/v1/namespaces", body, type_=MEDIA_TYPE)

    assert answer.code == 201
    assert answer.body["metadata"]["name"] == "n"


async def test_kind_that_is_not_read_from_protobuf_is_an_unsupported_media_type(
    api: RawClient,
) -> None:
    body = envelope("Whatever", b"")
    answer = await api.call("POST", "/api/v1/namespaces", body, type_=MEDIA_TYPE)

    assert answer.code == 415

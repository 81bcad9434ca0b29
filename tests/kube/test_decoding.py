"""Pages with malformed objects, and pages too large for one step."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from dlctl.api.meta import Object, ObjectKey
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.undecoded_object import TOO_DEEP
from dlctl.kube.decoding import decode, decode_page, identify_malformed
from dlctl.kube.errors import UnexpectedResponseError
from tests.support.timing import turns_during


def page(*items: Any, kind: str = "PodList", **meta: Any) -> bytes:
    return msgspec.json.encode({"kind": kind, "metadata": meta, "items": items})


def obj(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", **fields}}


async def test_malformed_object_is_separated_from_the_page() -> None:
    broken = obj("b", labels={"x": 1}, resourceVersion="7")
    decoded = await decode_page(page(obj("a"), broken, obj("c"), resourceVersion="9"), Pod)
    assert [pod.key.name for pod in decoded.items] == ["a", "c"]
    assert decoded.resource_version == "9"
    [malformed] = decoded.malformed
    assert (malformed.key, malformed.resource_version) == (ObjectKey("ns", "b"), "7")
    assert "labels" in malformed.error


async def test_large_page_is_decoded_in_steps_with_the_same_result() -> None:
    body = page(*(obj(f"p{n}") for n in range(1200)), resourceVersion="9")
    at_once = await decode_page(body, Object)

    async def decode() -> None:
        assert await decode_page(body, Object, single_pass_bytes=0) == at_once

    assert await turns_during(decode()) >= 3


async def test_page_of_large_objects_is_decoded_in_a_step_for_each() -> None:
    body = page(*(obj(f"p{n}", annotations={"a": "x" * 300_000}) for n in range(30)))

    async def decode() -> None:
        assert len((await decode_page(body, Object)).items) == 30

    assert await turns_during(decode()) >= 30


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"metadata":3}',
        b'{"items":{}}',
        page(kind="Table"),
        pytest.param(b'{"error":"unauthorized"}', id="page of a proxy"),
        pytest.param(b'{"kind":"Status","code":503,"metadata":{}}', id="status"),
    ],
)
async def test_response_that_is_not_a_list_raises(body: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        await decode_page(body, Pod)


async def test_items_can_be_null() -> None:
    assert (await decode_page(b'{"kind":"PodList","metadata":{},"items":null}', Pod)).items == ()


@pytest.mark.parametrize(
    ("raw", "key", "version"),
    [
        pytest.param(b'{"metadata":{"name":"a"}}', ObjectKey("", "a"), "", id="name alone"),
        pytest.param(b'{"metadata":{"name":3,"resourceVersion":"5"}}', None, "5", id="no name"),
        pytest.param(b'{"metadata":{"name":"a","namespace":[]}}', None, "", id="no namespace"),
        pytest.param(b'{"metadata":[]}', None, "", id="no metadata"),
        pytest.param(b"3", None, "", id="no object"),
    ],
)
def test_as_much_as_possible_is_decoded_of_a_malformed_object(
    raw: bytes, key: ObjectKey | None, version: str
) -> None:
    malformed = identify_malformed(raw, ValueError("why"))
    assert (malformed.key, malformed.resource_version, malformed.error) == (key, version, "why")


@pytest.mark.parametrize("one_step_bytes", [0, 1 << 20])
async def test_deeply_nested_object_keeps_its_metadata_and_the_other_objects(
    one_step_bytes: int,
) -> None:
    body = page(*({**obj(name), "spec": "HERE", "status": {"a": 1}} for name in "abc"))
    body = body.replace(b'"HERE"', b"[" * 1500 + b"]" * 1500, 1)
    decoded = await decode_page(body, JobObject, single_pass_bytes=one_step_bytes)
    assert [job.key.name for job in decoded.items] == ["a", "b", "c"]
    assert decoded.malformed == ()
    assert decoded.items[0].spec is TOO_DEEP
    assert [bytes(job.status) for job in decoded.items] == [b'{"a":1}'] * 3


async def test_object_with_too_many_brackets_is_malformed_but_keeps_its_uid() -> None:
    body = page(obj("a"), {**obj("b", uid="u1"), "spec": "HERE"}, resourceVersion="9")
    body = body.replace(b'"HERE"', b"[" * 1_000_000 + b"]" * 1_000_000)
    decoded = await decode_page(body, JobObject)
    assert [job.key.name for job in decoded.items] == ["a"]
    assert decoded.resource_version == "9"
    [malformed] = decoded.malformed
    assert (malformed.key, malformed.uid) == (ObjectKey("ns", "b"), "u1")


async def test_deeply_nested_status_is_malformed() -> None:
    broken = {**obj("b", uid="u1"), "status": "HERE"}
    body = page(obj("a"), broken).replace(b'"HERE"', b"[" * 100 + b"]" * 100)
    decoded = await decode_page(body, JobObject)
    assert [job.key.name for job in decoded.items] == ["a"]
    [malformed] = decoded.malformed
    assert (malformed.key, malformed.uid) == (ObjectKey("ns", "b"), "u1")
    assert "the status is nested deeper than 64 levels" in malformed.error


def test_deeply_nested_response_is_decoded() -> None:
    body = b'{"metadata":{"name":"a"},"spec":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert decode(body, Object).metadata.name == "a"


def test_response_with_too_many_brackets_is_unexpected() -> None:
    body = b'{"metadata":{"name":"a"},"spec":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    with pytest.raises(UnexpectedResponseError):
        decode(body, Object)


@pytest.mark.parametrize("raw", [b"\xff", b"}}}", b"", b'{"metadata":' + b"[" * 5000])
def test_any_input_is_identified_without_an_exception(raw: bytes) -> None:
    assert identify_malformed(raw, ValueError("why")).key is None


def test_only_the_identity_of_a_malformed_object_is_decoded() -> None:
    # As each of its changes takes as long, a tenant could keep the event loop busy with one.
    raw = msgspec.json.encode({**obj("a", uid="u"), "spec": [{"name": "a"}] * 9_000})
    tracemalloc.start()
    try:
        malformed = identify_malformed(raw, ValueError("why"))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (malformed.key, malformed.uid) == (ObjectKey("ns", "a"), "u")
    assert peak_bytes < len(raw) / 10

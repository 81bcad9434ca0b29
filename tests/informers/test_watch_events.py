"""Decoding the lines of a watch, malformed ones included."""

import pytest

from dlctl.api.meta import ObjectKey, WatchEventType
from dlctl.api.nesting import MAX_BRACKETS
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.undecoded_object import TOO_DEEP
from dlctl.informers.watch_events import (
    Bookmark,
    EventDecoder,
    MalformedEvent,
    ObjectEvent,
    UnknownEvent,
)
from dlctl.kube.decoding import decode_page
from dlctl.kube.errors import ExpiredError, UnexpectedResponseError
from tests.informers.scripted import INITIAL_END, added, bookmark, deleted, failure, pod


@pytest.fixture
def decoder() -> EventDecoder[Pod]:
    return EventDecoder(Pod)


def test_event_has_its_object_and_version(decoder: EventDecoder[Pod]) -> None:
    event = decoder.decode(added(pod("a", 7)))
    assert isinstance(event, ObjectEvent)
    assert (event.type, event.object.key, event.version) == ("ADDED", ObjectKey("ns", "a"), "7")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(bookmark(7), Bookmark("7"), id="plain"),
        pytest.param(bookmark(7, INITIAL_END), Bookmark("7", initial_end=True), id="end"),
        pytest.param(bookmark(7, {"other": "true"}), Bookmark("7"), id="another annotation"),
    ],
)
def test_bookmark_shows_whether_it_ends_the_initial_objects(
    decoder: EventDecoder[Pod], line: bytes, expected: Bookmark
) -> None:
    assert decoder.decode(line) == expected


def test_error_event_is_classified_by_its_reason(decoder: EventDecoder[Pod]) -> None:
    assert isinstance(decoder.decode(failure(410, "Gone")), ExpiredError)


def test_unknown_event_type_is_named(decoder: EventDecoder[Pod]) -> None:
    assert decoder.decode(b'{"type":"MOVED","object":{"metadata":{}}}') == UnknownEvent("MOVED")


def test_malformed_object_keeps_key_and_version(decoder: EventDecoder[Pod]) -> None:
    event = decoder.decode(deleted(pod("a", 7, labels={"x": 1})))
    assert isinstance(event, MalformedEvent)
    assert event.type is WatchEventType.DELETED
    assert (event.object.key, event.version) == (ObjectKey("ns", "a"), "7")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"object":{}}',
        b'{"type":"BOOKMARK","object":{"metadata":{}}}',
        b'{"type":"BOOKMARK","object":[]}',
        b"\xff",
    ],
)
def test_line_that_is_not_an_event_raises(decoder: EventDecoder[Pod], line: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        decoder.decode(line)


def test_invalid_utf8_affects_only_its_object(decoder: EventDecoder[Pod]) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":3,"uid":"\xff"}}}'
    event = decoder.decode(line)
    assert isinstance(event, MalformedEvent)
    assert event.object.key is None


def deep(levels: int) -> bytes:
    job = b'{"metadata":{"name":"a","resourceVersion":"7","uid":"u"},"spec":%b,"status":{"a":1}}'
    return b'{"type":"ADDED","object":%b}' % (job % (b"[" * levels + b"]" * levels))


def test_deeply_nested_object_keeps_its_status_without_its_spec() -> None:
    event = EventDecoder(JobObject).decode(deep(1500))
    assert isinstance(event, ObjectEvent)
    assert event.object.spec is TOO_DEEP
    assert bytes(event.object.status) == b'{"a":1}'


def test_object_with_too_many_brackets_is_malformed_but_keeps_its_uid() -> None:
    event = EventDecoder(JobObject).decode(deep(1_000_000))
    assert isinstance(event, MalformedEvent)
    assert event.object.key == ObjectKey("", "a")
    assert (event.object.uid, event.version) == ("u", "7")


@pytest.mark.parametrize("pairs", range(MAX_BRACKETS // 2 - 6, MAX_BRACKETS // 2 + 6))
async def test_list_and_watch_set_the_same_objects_apart(pairs: int) -> None:
    """Too deep to be decoded at once, with about as many brackets as are examined."""
    deep_pairs = 1500
    deep_list = b"[" * deep_pairs + b"]" * deep_pairs
    spec = b"[[%b%b,{}]]" % (deep_list, b",[]" * (pairs - deep_pairs))
    item = b'{"metadata":{"name":"a","resourceVersion":"7","uid":"u"},"spec":%b}' % spec
    page = await decode_page(b'{"items":[%b]}' % item, JobObject)
    event = EventDecoder(JobObject).decode(b'{"type":"ADDED","object":%b}' % item)
    assert bool(page.items) is isinstance(event, ObjectEvent)

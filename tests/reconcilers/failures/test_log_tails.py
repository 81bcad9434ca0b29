"""Ends of logs as an API server sends them: bounded, whatever a program writes."""

from collections.abc import AsyncIterator

import attrs
import pytest

from dlctl.api.meta import PODS, UID, Object, ObjectKey
from dlctl.api.objects.pods import ContainerStateTerminated
from dlctl.kube.client import Client
from dlctl.kube.errors import NotFoundError
from dlctl.local.apiserver.endpoints.log_requests import LogRequest as Requested
from dlctl.local.apiserver.server import ApiServer, serve
from dlctl.reconcilers.failures.log_requests import LogTailRequest
from dlctl.reconcilers.failures.log_tails import (
    MAX_TAIL_BYTES,
    LogTailReader,
    PodReplacedError,
    text_of,
)
from dlctl.reconcilers.failures.tail_cache import TailCache

KEY = ObjectKey("default", "one")
REQUEST = LogTailRequest(KEY, UID("u"), "main", ContainerStateTerminated(exit_code=1))


def prints(server: ApiServer, log: bytes) -> list[Requested]:
    """Serve this log like a kubelet; return the requests as they come."""
    requests: list[Requested] = []

    async def source(request: Requested) -> AsyncIterator[bytes]:
        requests.append(request)
        lines = log.splitlines(keepends=True)[-(request.tail_lines or 0) :]
        sent = b"".join(lines)[: request.limit_bytes]
        for start in range(0, len(sent), 10_000):
            yield sent[start : start + 10_000]

    server.subresources.log_source = source
    return requests


async def read(log: bytes) -> tuple[str, list[Requested]]:
    async with serve(tls=False) as server, Client(server.config()) as client:
        spec = {"containers": [{"name": "main", "image": "any"}]}
        metadata = {"name": KEY.name}
        pod = await client.create(PODS, KEY.namespace, {"metadata": metadata, "spec": spec}, Object)
        requests = prints(server, log)
        cache, request = TailCache(), attrs.evolve(REQUEST, uid=pod.metadata.uid)
        await LogTailReader(client, cache).read(KEY, request)
        tail = cache.get(request)
        assert tail is not None
        return text_of(tail), requests


async def test_short_log_is_read_whole() -> None:
    text, requests = await read(b"one\ntwo\n")
    assert text == "one\ntwo\n"
    assert [(one.container, one.previous) for one in requests] == [("main", False)]


async def test_end_of_a_long_log_is_kept() -> None:
    log = b"".join(b"%06d %s\n" % (number, b"x" * 500) for number in range(1000))
    text, requests = await read(log)
    assert len(text) == MAX_TAIL_BYTES
    assert text.endswith(log[-2000:].decode())
    assert len(requests) == 1


async def test_fewer_lines_are_read_if_they_are_long() -> None:
    log = b"".join(b"%06d %s\n" % (number, b"x" * 9000) for number in range(600))
    text, requests = await read(log)
    assert text.endswith(log[-20_000:].decode())
    assert [one.tail_lines for one in requests] == [500, 60]


async def test_endless_line_counts_as_no_log() -> None:
    text, requests = await read(b"x" * 3_000_000)
    assert text == ""
    assert all((one.limit_bytes or 0) <= 1024 * 1024 for one in requests)


async def test_bytes_that_are_no_text_are_replaced() -> None:
    text, _ = await read(b"\xff\xfe ValueError\n")
    assert text.endswith("ValueError\n")


async def test_missing_pod_is_an_error() -> None:
    async with serve(tls=False) as server, Client(server.config()) as client:
        with pytest.raises(NotFoundError):
            await LogTailReader(client, TailCache()).read(KEY, REQUEST)


async def test_log_of_another_pod_of_the_name_is_not_kept() -> None:
    async with serve(tls=False) as server, Client(server.config()) as client:
        spec = {"containers": [{"name": "main", "image": "any"}]}
        await client.create(PODS, KEY.namespace, {"metadata": {"name": KEY.name}, "spec": spec})
        prints(server, b"another\n")
        cache = TailCache()
        with pytest.raises(PodReplacedError):
            await LogTailReader(client, cache).read(KEY, REQUEST)
        assert cache.get(REQUEST) is None

"""A blocking cluster whose pods take long to end."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from dlctl import blocking_cluster
from dlctl.blocking_cluster import BlockingCluster


class _SlowCluster:
    """A cluster that ends once it may, and counts its runs."""

    def __init__(self) -> None:
        self.may_start, self.may_end = threading.Event(), threading.Event()
        self.may_start.set()
        self.begun = self.ended = 0

    async def __aenter__(self) -> None:
        self.begun += 1
        await asyncio.to_thread(self.may_start.wait)

    async def __aexit__(self, *_: object) -> None:
        while not self.may_end.wait(0.01):
            pass
        self.ended += 1


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[_SlowCluster]:
    monkeypatch.setattr(blocking_cluster, "_CLOSE_TIMEOUT_S", 0.1)
    cluster = _SlowCluster()
    yield cluster
    cluster.may_end.set()


@pytest.fixture
def blocking(slow: _SlowCluster, monkeypatch: pytest.MonkeyPatch) -> BlockingCluster:
    cluster = BlockingCluster(network="host")
    monkeypatch.setattr(cluster, "_cluster", slow)
    return cluster


def test_close_that_takes_too_long_is_an_error_and_can_be_repeated(
    slow: _SlowCluster, blocking: BlockingCluster
) -> None:
    blocking.open()
    with pytest.raises(TimeoutError, match=r"not ended within 0\.1 s"):
        blocking.close()
    with pytest.raises(RuntimeError, match="opened first"):
        blocking.delete_namespace("a")
    slow.may_end.set()
    blocking.close()
    assert slow.ended == 1


def test_cluster_is_not_opened_again_while_it_ends(
    slow: _SlowCluster, blocking: BlockingCluster
) -> None:
    blocking.open()
    with pytest.raises(TimeoutError):
        blocking.close()
    with pytest.raises(TimeoutError):
        blocking.open()
    assert slow.begun == 1
    slow.may_end.set()
    with blocking:
        assert (slow.begun, slow.ended) == (2, 1)


def test_cluster_whose_thread_has_ended_is_opened_again(
    slow: _SlowCluster, blocking: BlockingCluster
) -> None:
    slow.may_end.set()
    blocking.open()
    # As a failure of the cluster itself does.
    assert blocking._loop is not None
    assert blocking._thread is not None
    blocking._loop.call_soon_threadsafe(blocking._closing.set)
    blocking._thread.join()
    with blocking:
        assert (slow.begun, slow.ended) == (2, 1)


def test_cluster_that_two_threads_open_at_once_is_ready_for_both(
    slow: _SlowCluster, blocking: BlockingCluster
) -> None:
    slow.may_start.clear()
    with ThreadPoolExecutor() as threads:
        opened = [threads.submit(blocking.open) for _ in range(2)]
        done, _ = wait(opened, timeout=0.1)
        slow.may_start.set()
    slow.may_end.set()
    assert [each.result() for each in opened] == [blocking, blocking]
    assert (done, slow.begun) == (set(), 1)
    blocking.close()


def test_slow_end_does_not_hide_the_error_of_the_block(
    blocking: BlockingCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="of the user"), blocking:
        raise ValueError("of the user")
    assert "not ended within" in caplog.text

"""Memory for the ends of logs: bounded for all jobs together."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import UID, ObjectKey
from dlctl.api.objects.pods import ContainerStateTerminated
from dlctl.clock import SystemClock
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.reconcilers.failures.failure_logs import FailureLogs
from dlctl.reconcilers.failures.log_requests import LogTailRequest
from dlctl.reconcilers.failures.tail_cache import TailCache
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.reconcilers.failures.torch_jobs import at, failed, pods, running, torch_job

TAIL = b"x" * 50_000
LIMIT = 1_000_000


def request(name: str, namespace: str = "default") -> LogTailRequest:
    ended = ContainerStateTerminated(exit_code=1)
    return LogTailRequest(ObjectKey(namespace, name), UID(f"{namespace}-{name}"), "main", ended)


def filled(count: int, tail: bytes = TAIL) -> TailCache:
    cache = TailCache(LIMIT)
    for number in range(count):
        cache.put(request(f"pod-{number}"), tail)
    return cache


def test_size_is_bounded_and_the_oldest_are_dropped_first() -> None:
    cache = filled(1000)
    assert LIMIT / 2 < cache.size <= LIMIT
    assert cache.get(request("pod-0")) is None
    assert cache.get(request("pod-999")) == TAIL


def test_empty_tails_are_bounded_as_well() -> None:
    assert filled(100_000, b"").get(request("pod-0")) is None


def test_tail_in_use_stays() -> None:
    cache = filled(5)
    for number in range(100):
        assert cache.get(request("pod-0")) == TAIL
        cache.put(request(f"other-{number}"), TAIL)


def test_tail_above_the_limit_is_not_kept() -> None:
    cache = filled(3)
    cache.put(request("large"), b"x" * (LIMIT + 1))
    assert cache.get(request("large")) is None
    assert cache.get(request("pod-0")) == TAIL


def test_namespace_with_many_tails_drops_none_of_others() -> None:
    cache = TailCache(LIMIT)
    for number in range(3):
        cache.put(request(f"pod-{number}", "quiet"), TAIL)
    for number in range(1000):
        cache.put(request(f"pod-{number}", "loud"), TAIL)
    assert all(cache.get(request(f"pod-{number}", "quiet")) == TAIL for number in range(3))
    assert cache.get(request("pod-999", "loud")) == TAIL
    assert LIMIT / 2 < cache.size <= LIMIT


def test_namespaces_with_many_tails_share_the_memory() -> None:
    cache = TailCache(LIMIT)
    for namespace in ("first", "second", "third"):
        for number in range(100):
            cache.put(request(f"pod-{number}", namespace), TAIL)
    kept = [
        sum(cache.get(request(f"pod-{number}", namespace)) is not None for number in range(100))
        for namespace in ("first", "second", "third")
    ]
    assert max(kept) - min(kept) <= 1
    assert cache.size <= LIMIT


def test_tail_that_is_put_again_takes_its_memory_once() -> None:
    cache = filled(1)
    cache.put(request("pod-0"), TAIL + TAIL)
    assert cache.size == filled(1, TAIL + TAIL).size
    cache.discard(request("pod-0"))
    cache.discard(request("pod-0"))
    assert cache.size == 0


def crashed(name: str) -> tuple[Job, Observed]:
    """Return a job of which a replica has failed, as observed."""
    job = running(torch_job("Never"))
    job = attrs.evolve(job, key=ObjectKey("default", name))
    found = pods(job, worker1=failed(1, 30, f"uid-of-{name}"))
    return job, observe(job, Children(found), at(31))


@asynccontextmanager
async def logs_of(cache: TailCache, *names: str) -> AsyncIterator[FailureLogs]:
    """Read the logs of jobs that have failed."""
    all_read = asyncio.Barrier(len(names) + 1)

    async def read(_: ObjectKey, wanted: LogTailRequest) -> None:
        cache.put(wanted, zlib.compress(TAIL, level=0))

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:

        def enqueue(_: ObjectKey) -> None:
            group.create_task(all_read.wait())

        tasks = BackgroundTasks(read, enqueue, controller="jobs", limiter=lambda *_: nullcontext())
        run = group.create_task(tasks.run())
        logs = FailureLogs(tasks, 4, SystemClock(), cache)
        for name in names:
            await logs.of(*crashed(name))
        await all_read.wait()
        yield logs
        run.cancel()


async def test_logs_of_jobs_that_are_forgotten_take_no_memory() -> None:
    cache = TailCache(LIMIT)
    async with logs_of(cache, "one", "two") as logs:
        both = cache.size
        logs.forget(crashed("one")[0].key)
        assert 0 < cache.size < both
        logs.forget(crashed("two")[0].key)
        assert cache.size == 0


async def test_dropped_log_counts_as_none_and_is_not_waited_for() -> None:
    cache = TailCache(LIMIT)
    async with logs_of(cache, "one") as logs:
        found = await logs.of(*crashed("one"))
        assert list(found.texts.values()) == [TAIL.decode()]
        for number in range(100):
            cache.put(request(f"other-{number}"), TAIL)
        found = await logs.of(*crashed("one"))
        assert (dict(found.texts), found.wait_s) == ({}, 0.0)

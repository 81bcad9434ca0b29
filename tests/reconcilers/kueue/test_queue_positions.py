"""Positions in Kueue's queues: read seldom, only where a job waits, and never at its expense."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import attrs
import msgspec
import pytest

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.objects.workloads import Workload
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.reconcilers.kueue.queue_positions import (
    INTERVAL_S,
    MAX_FAILURES,
    MAX_QUEUES,
    MAX_TIMEOUTS,
    MAX_WORKLOADS,
    REQUEST_TIMEOUT_S,
    QueuePositions,
)
from dlctl.reconcilers.kueue.workload_handlers import jobs_of_workload
from dlctl.workqueue.queue import WorkQueue
from tests.support.visibility import VisibilityApi, serve_visibility

pytestmark = pytest.mark.looptime(noop_cycles=8)
TEAM_A: Final = ObjectKey("ml", "team-a")
TEAM_B: Final = ObjectKey("ml", "team-b")
FIRST: Final = ObjectKey("ml", "first-1a2b3")
WARNING: Final = "cannot read positions"


def workload(
    job: str,
    queue: str = "team-a",
    kind: str = "PyTorchJob",
    namespace: str = "ml",
    **spec: Any,
) -> Workload:
    group = "kubeflow.org/v1" if kind == "PyTorchJob" else "batch/v1"
    owner = {"apiVersion": group, "kind": kind, "name": job, "uid": f"uid-{job}"}
    wire = {
        "metadata": {"name": f"{job}-1a2b3", "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"queueName": queue, **spec},
    }
    return msgspec.convert(wire, Workload)


def admitted(job: str) -> Workload:
    condition = {"type": "QuotaReserved", "status": "True"}
    status = msgspec.convert({"status": {"conditions": [condition]}}, Workload).status
    return msgspec.structs.replace(workload(job), status=status)


@attrs.define(eq=False)
class Polling:
    """A poller that runs, and what it has done."""

    api: VisibilityApi
    positions: QueuePositions
    workloads: Store[Workload]
    queue: WorkQueue[ObjectKey]
    task: asyncio.Task[None]

    async def rounds(self, count: int = 1) -> None:
        await asyncio.sleep(count * INTERVAL_S + 2 * REQUEST_TIMEOUT_S)

    async def enqueued(self) -> set[str]:
        """Return the names of the jobs that were enqueued since the last call."""
        names = set()
        while len(self.queue):
            key = await self.queue.get()
            names.add(key.name)
            self.queue.done(key)
        return names


@asynccontextmanager
async def polling(api: VisibilityApi, *workloads: Workload) -> AsyncIterator[Polling]:
    store, queue, queues = Store[Workload](), WorkQueue[ObjectKey](), JobQueues()
    queues.add(Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"), queue)
    for one in workloads:
        store.put(one)
    jobs = partial(jobs_of_workload, queues, Store())
    async with serve_visibility(api) as config, Client(config) as client:
        positions = QueuePositions(client, store, jobs)
        task = asyncio.create_task(positions.run())
        try:
            yield Polling(api, positions, store, queue, task)
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


def two_jobs() -> VisibilityApi:
    return VisibilityApi(positions={TEAM_A: {"first-1a2b3": 2, "second-1a2b3": 5}})


async def test_positions_count_from_one_and_their_jobs_are_enqueued() -> None:
    async with polling(two_jobs(), workload("first"), workload("second")) as polled:
        await asyncio.sleep(1)
        second = ObjectKey("ml", "second-1a2b3")
        assert polled.positions.by_workload == {FIRST: "3", second: "6"}
        assert await polled.enqueued() == {"first", "second"}


async def test_loop_runs_while_owners_of_many_workloads_are_looked_up() -> None:
    names = [f"job-{index}" for index in range(1000)]
    api = VisibilityApi(positions={TEAM_A: {f"{name}-1a2b3": 1 for name in names}})
    looked_up, seen, done = 0, [0], asyncio.Event()

    async with polling(api, *map(workload, names)) as polled:
        jobs_of = polled.positions.jobs_of

        def counted(one: Workload) -> Iterator[tuple[WorkQueue[ObjectKey], ObjectKey]]:
            nonlocal looked_up
            looked_up += 1
            if looked_up == 2 * len(names):
                done.set()
            # Until the last one, none of them is known to belong to a job.
            return iter(jobs_of(one) if looked_up >= len(names) else ())

        async def watch() -> None:
            while True:
                seen.append(looked_up)
                await asyncio.sleep(0)

        polled.positions.jobs_of = counted
        watching = asyncio.create_task(watch())
        # First to find the queue, then to find the jobs.
        await done.wait()
        watching.cancel()
        assert max(after - before for before, after in itertools.pairwise(seen)) <= 250


async def test_only_jobs_whose_position_has_changed_are_enqueued() -> None:
    async with polling(two_jobs(), workload("first"), workload("second")) as polled:
        await asyncio.sleep(1)
        await polled.enqueued()
        await polled.rounds()
        assert await polled.enqueued() == set()
        polled.api.positions[TEAM_A]["second-1a2b3"] = 4
        await polled.rounds()
        assert await polled.enqueued() == {"second"}


async def test_queue_that_moves_on_enqueues_only_jobs_that_show_another_position() -> None:
    names = [f"job-{index}" for index in range(300)]
    positions = {f"{name}-1a2b3": index for index, name in enumerate(names)}
    api = VisibilityApi(positions={TEAM_A: positions})
    async with polling(api, *map(workload, names)) as polled:
        await asyncio.sleep(1)
        assert await polled.enqueued() == set(names)
        polled.api.positions[TEAM_A] = {name: at - 1 for name, at in positions.items() if at}
        await polled.rounds()
        shown = {f"job-{index}" for index in (*range(11), 20, 50, 100)}
        assert await polled.enqueued() == shown


async def test_each_queue_is_read_once_in_an_interval() -> None:
    api = VisibilityApi(positions={TEAM_A: {"first-1a2b3": 0}, TEAM_B: {}})
    jobs = [workload("first"), workload("second"), workload("third", "team-b")]
    async with polling(api, *jobs) as polled:
        await polled.rounds(10)
        paths = polled.api.requests
        assert len(set(paths)) == 2
        assert 20 <= len(paths) <= 24


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(workload("other", kind="Job"), id="of a job of others"),
        pytest.param(workload("other", active=False), id="deactivated"),
        pytest.param(admitted("other"), id="admitted"),
    ],
)
async def test_nothing_is_read_for_a_workload(other: Workload) -> None:
    async with polling(two_jobs(), other) as polled:
        await polled.rounds(3)
        assert polled.api.requests == []


async def test_reading_ends_with_the_last_job_that_waits() -> None:
    async with polling(two_jobs(), workload("first")) as polled:
        await asyncio.sleep(1)
        polled.workloads.put(admitted("first"))
        await polled.rounds(3)
        assert len(polled.api.requests) == 1
        assert not polled.positions.by_workload


async def test_older_version_is_read_where_it_is_the_only_one() -> None:
    api = attrs.evolve(two_jobs(), versions=("v1beta1",))
    async with polling(api, workload("first")) as polled:
        await asyncio.sleep(1)
        assert polled.positions.by_workload[FIRST] == "3"
        assert "/v1beta1/" in api.requests[0]


@pytest.mark.parametrize("ignores_limit", [False, True])
async def test_workloads_beyond_the_limit_have_no_position(ignores_limit: bool) -> None:
    many = {f"w-{index}": index for index in range(MAX_WORKLOADS + 10)}
    api = VisibilityApi(positions={TEAM_A: many}, ignores_limit=ignores_limit)
    async with polling(api, workload("first")) as polled:
        await asyncio.sleep(1)
        assert len(polled.positions.by_workload) == MAX_WORKLOADS


async def test_name_of_a_queue_stays_one_part_of_the_path() -> None:
    odd = "a?limit=1"
    api = VisibilityApi(positions={ObjectKey("ml", odd): {"first-1a2b3": 0}})
    async with polling(api, workload("first", odd)) as polled:
        await asyncio.sleep(1)
        assert polled.positions.by_workload == {FIRST: "1"}


@pytest.mark.parametrize("code", [403, 500, 503])
async def test_refused_queue_has_no_positions_and_is_logged_once(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    api = two_jobs()
    api.positions[TEAM_B] = {"third-1a2b3": 0}
    async with polling(api, workload("first"), workload("third", "team-b")) as polled:
        await asyncio.sleep(1)
        api.errors[TEAM_A] = code
        await polled.rounds(5)
        assert polled.positions.by_workload == {ObjectKey("ml", "third-1a2b3"): "1"}
        assert caplog.text.count(WARNING) == 1

        api.errors.clear()
        await polled.rounds()
        assert polled.positions.by_workload[FIRST] == "3"
        api.errors[TEAM_A] = code
        await polled.rounds(2)
        assert caplog.text.count(WARNING) == 2


async def test_queue_that_does_not_exist_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with polling(two_jobs(), workload("first"), workload("lost", "none")) as polled:
        await polled.rounds()
        assert polled.positions.by_workload[FIRST] == "3"
        assert WARNING not in caplog.text


async def test_cluster_without_the_api_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    api = attrs.evolve(two_jobs(), versions=())
    async with polling(api, workload("first")) as polled:
        await polled.rounds(5)
        assert (polled.positions.by_workload, api.requests) == ({}, [])
        assert caplog.text.count(WARNING) == 1

        # What is installed later is found.
        api.versions = ("v1beta2",)
        await polled.rounds()
        assert polled.positions.by_workload[FIRST] == "3"


async def test_response_that_is_none_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    api = VisibilityApi(positions={TEAM_A: {"first-1a2b3": "third"}})  # type: ignore[dict-item]
    async with polling(api, workload("first")) as polled:
        await polled.rounds(3)
        assert not polled.positions.by_workload
        assert caplog.text.count(WARNING) == 1


async def test_slow_queue_hides_no_position_of_another(caplog: pytest.LogCaptureFixture) -> None:
    api = two_jobs()
    api.positions[TEAM_B] = {"third-1a2b3": 0}
    async with polling(api, workload("first"), workload("third", "team-b")) as polled:
        await asyncio.sleep(1)
        await polled.enqueued()
        api.hanging.add(TEAM_A)
        await polled.rounds(MAX_FAILURES - 1)
        assert await polled.enqueued() == set(), "each keeps its position"
        await polled.rounds(2)
        assert polled.positions.by_workload == {ObjectKey("ml", "third-1a2b3"): "1"}
        assert await polled.enqueued() == {"first"}
        assert caplog.text.count(WARNING) == 1


async def test_slow_namespace_delays_no_other() -> None:
    slow = {ObjectKey("ml", f"q-{index}") for index in range(2 * MAX_TIMEOUTS)}
    jobs = [workload(key.name, key.name, namespace=one) for key in slow for one in ("ml", "other")]
    async with polling(VisibilityApi(hanging=slow), *jobs) as polled:
        for count in range(1, 4):
            await asyncio.sleep(REQUEST_TIMEOUT_S + 1)
            read = [path.split("/")[5] for path in polled.api.requests]
            assert (read.count("ml"), read.count("other")) == (count, count * len(slow))
            await asyncio.sleep(INTERVAL_S - 1)


async def test_positions_are_kept_when_a_round_fails_now_and_then() -> None:
    async with polling(two_jobs(), workload("first")) as polled:
        await asyncio.sleep(1)
        await polled.enqueued()
        for _ in range(MAX_FAILURES):
            polled.api.errors[TEAM_A] = 503
            await polled.rounds()
            polled.api.errors.clear()
            await polled.rounds()
        assert await polled.enqueued() == set()


async def test_queues_of_one_namespace_are_read_in_turn_and_delay_no_other() -> None:
    names = [f"q-{index}" for index in range(3 * MAX_QUEUES)]
    others = ObjectKey("other", "team")
    api = VisibilityApi(positions={others: {"theirs-1a2b3": 0}})
    lost = [workload(name, name) for name in names]
    async with polling(api, *lost, workload("theirs", "team", namespace="other")) as polled:
        await asyncio.sleep(1)
        assert len(api.requests) == MAX_QUEUES
        await asyncio.sleep(3 * INTERVAL_S)
        theirs = [path for path in api.requests if "/other/" in path]
        assert (len(api.requests), len(theirs)) == (4 * MAX_QUEUES, 4)
        assert len(set(api.requests)) == len(names) + 1
        assert polled.positions.by_workload == {ObjectKey("other", "theirs-1a2b3"): "1"}


async def test_namespaces_are_read_in_turn() -> None:
    spaces = [f"ns-{index}" for index in range(MAX_QUEUES + 50)]
    jobs = [workload(f"job-{at}", f"q-{at}", namespace=one) for one in spaces for at in range(3)]
    async with polling(VisibilityApi(), *jobs) as polled:
        await asyncio.sleep(1 + INTERVAL_S)
        assert len({path.split("/")[5] for path in polled.api.requests}) == len(spaces)


async def test_queues_beyond_the_part_of_a_round_keep_their_positions() -> None:
    names = [f"q-{index}" for index in range(2 * MAX_QUEUES)]
    api = VisibilityApi(positions={ObjectKey("ml", name): {f"{name}-1a2b3": 0} for name in names})
    async with polling(api, *(workload(name, name) for name in names)) as polled:
        await asyncio.sleep(1 + INTERVAL_S)
        assert await polled.enqueued() == set(names)
        await polled.rounds(4)
        assert await polled.enqueued() == set()


async def test_server_that_hangs_delays_no_more_than_its_round(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = two_jobs()
    others = [workload("other", namespace=f"ns-{index}") for index in range(20)]
    async with polling(api, *others, workload("first")) as polled:
        await asyncio.sleep(1)
        await polled.enqueued()
        api.requests.clear()
        api.is_hanging = True
        await polled.rounds()
        assert len(api.requests) == MAX_TIMEOUTS, "the other queues would hang as well"
        await polled.rounds(MAX_FAILURES + 1)
        assert not polled.positions.by_workload
        assert await polled.enqueued() == {"first"}
        assert caplog.text.count(WARNING) == 1

        api.is_hanging = False
        await polled.rounds(2)
        assert polled.positions.by_workload[FIRST] == "3"


async def test_cancellation_ends_the_request_in_flight() -> None:
    api = attrs.evolve(two_jobs(), is_hanging=True)
    async with polling(api, workload("first")) as polled:
        await asyncio.sleep(1)
        assert (len(api.requests), api.cancelled_count) == (1, 0)
        polled.task.cancel()
        await asyncio.wait([polled.task])
        await asyncio.sleep(1)
        assert (polled.task.cancelled(), api.cancelled_count) == (True, 1)

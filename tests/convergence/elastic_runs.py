"""Runs a case of scale requests, and checks its invariants and its outcome."""

import asyncio
from typing import Final

from dlctl.api.job import Replica
from tests.convergence.elastic_cases import JOB, ElasticCase, Expected, Request
from tests.convergence.runs import COMPACTED, moment, quiet
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster

LAUNCHER: Final = Replica("launcher", 0)
# Longer than the longest pause between two attempts.
_REST_S: Final = 30.0


async def run(case: ElasticCase) -> None:
    """Run a case to its end."""
    async with start_elastic_cluster(COMPACTED.options) as stage:
        await stage.running(case.workers, worker={"maxReplicas": 6})
        stage.launchers.disconnects_s = case.disconnect_s
        never = float("inf")
        stage.launchers.reachable_after_s = {
            f"{JOB}-worker-{index}": never for index in case.unreachable
        }
        stage.launchers.faults = list(case.incidents)
        async with asyncio.TaskGroup() as group:
            group.create_task(_arm(stage, case))
            group.create_task(_submit(stage, case))
            await _work_through_kills(stage, case)
        await _check_end(stage, case)
        await check_rest(stage)


async def _arm(stage: ElasticHarness, case: ElasticCase) -> None:
    clock, faults = stage.cluster.clock, stage.cluster.server.faults
    started = clock.monotonic()
    for at_s, fault in case.faults:
        await asyncio.sleep(max(0.0, started + at_s - clock.monotonic()))
        faults.add(fault)
    if case.faults:
        await asyncio.sleep(COMPACTED.faults_s)
    faults.clear()


async def _submit(stage: ElasticHarness, case: ElasticCase) -> None:
    earlier: Request | None = None
    for request in case.requests:
        if earlier is not None and earlier.resource != request.resource:
            # Each kind has its own watch, and a fault may delay one behind the other.
            await _await_acceptance(stage, earlier)
        await asyncio.sleep(request.after_s)
        await stage.scale(request.resource, request.name, JOB, request.spec)
        earlier = request


async def _await_acceptance(stage: ElasticHarness, request: Request) -> None:
    await stage.cluster.until(lambda: bool(stage.scaler(request.name).get("conditions")))


async def _work_through_kills(stage: ElasticHarness, case: ElasticCase) -> None:
    for kill in case.kills:
        await moment(stage.cluster, kill, COMPACTED.faults_s)
        await stage.cluster.kill_all()
        await asyncio.sleep(kill.down_s)
        stage.cluster.start()


async def _check_end(stage: ElasticHarness, case: ElasticCase) -> None:
    names = [request.name for request in case.requests]
    for name in names:
        await stage.scaler_result(name)
    await stage.cluster.settled()
    made = stage.cluster.history.created.items()
    left = Expected(
        members=tuple(stage.members()),
        phases={name: stage.scaler(name)["phase"] for name in names},
        made={m.replica.index: count for m, count in made if m.replica != LAUNCHER},
    )
    assert left == case.expected, f"{left}, not {case.expected}:\n{stage.cluster.dump()}"
    assert stage.is_consistent(), f"hosts, files and pods differ:\n{stage.cluster.dump()}"
    for name in names:
        status = stage.scaler(name)
        chosen = "addPods" in status or "toDeletePods" in status
        assert chosen or status["phase"] == "ScaleFailed", f"{name} names no pods"


async def check_rest(stage: ElasticHarness) -> None:
    """Check that a restarted controller has nothing to do."""
    written = await quiet(stage.cluster, _REST_S)
    await stage.cluster.kill_all()
    stage.cluster.start()
    await asyncio.sleep(_REST_S)
    more = stage.cluster.history.writes() - written
    assert not more, f"a new controller finds something to write: {more}"

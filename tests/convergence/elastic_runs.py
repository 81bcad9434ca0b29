"""Runs a case of requests to scale, and checks what must hold at its end and all the way there."""

import asyncio
from typing import Final

from dlctl.api.job import Replica
from tests.convergence.elastic_cases import JOB, ElasticCase
from tests.convergence.runs import COMPACTED, moment, quiet
from tests.support.elastic import Stage, elastic_world

_FINISHED: Final = ("ScaleSucceeded", "ScaleFailed")
# Long enough for the longest pause between two tries.
_REST_S: Final = 30.0


async def run(case: ElasticCase) -> None:
    """Run a case to its end."""
    async with elastic_world(COMPACTED.options) as stage:
        await stage.running(case.workers, worker={"maxReplicas": 6})
        stage.launchers.lets_go_s = case.lets_go_s
        never = float("inf")
        stage.launchers.answers_s = {f"{JOB}-worker-{index}": never for index in case.mute}
        stage.launchers.troubles = list(case.troubles)
        async with asyncio.TaskGroup() as group:
            group.create_task(_arm(stage, case))
            group.create_task(_ask(stage, case))
            await _work_through_kills(stage, case)
        await _check_end(stage, case)
        await _check_rest(stage)


async def _arm(stage: Stage, case: ElasticCase) -> None:
    clock, faults = stage.cluster.clock, stage.cluster.server.faults
    started = clock.monotonic()
    for at_s, fault in case.faults:
        await asyncio.sleep(max(0.0, started + at_s - clock.monotonic()))
        faults.add(fault)
    if case.faults:
        await asyncio.sleep(COMPACTED.faults_s)
    faults.clear()


async def _ask(stage: Stage, case: ElasticCase) -> None:
    for request in case.requests:
        await asyncio.sleep(request.after_s)
        await stage.scale(request.resource, request.name, JOB, request.spec)


async def _work_through_kills(stage: Stage, case: ElasticCase) -> None:
    for kill in case.kills:
        await moment(stage.cluster, kill, COMPACTED.faults_s)
        await stage.cluster.kill_all()
        await asyncio.sleep(kill.down_s)
        stage.cluster.start()


async def _check_end(stage: Stage, case: ElasticCase) -> None:
    names = [request.name for request in case.requests]
    for name in names:
        await stage.ended(name)
    await stage.cluster.settled()
    assert {name: stage.scaler(name)["phase"] for name in names} == case.expected.phases
    assert stage.members() == list(case.expected.members)
    assert stage.is_whole(), stage.cluster.dump()
    made = stage.cluster.history.made.items()
    counts = {m.replica.index: n for m, n in made if m.replica != Replica("launcher", 0)}
    assert counts == case.expected.made
    for name in names:
        status = stage.scaler(name)
        chosen = "addPods" in status or "toDeletePods" in status
        assert chosen or status["phase"] == "ScaleFailed"


async def _check_rest(stage: Stage) -> None:
    """Check that the next controller finds nothing to do."""
    written = await quiet(stage.cluster, _REST_S)
    await stage.cluster.kill_all()
    stage.cluster.start()
    await asyncio.sleep(_REST_S)
    more = stage.cluster.history.writes() - written
    assert not more, f"a new controller finds something to write: {more}"

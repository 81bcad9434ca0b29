"""Scale requests while workers die: their names are unpredictable, their number is not."""

import asyncio
import random
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from tests.convergence.cases import Kill
from tests.convergence.elastic_cases import JOB, faults_of, incidents_of
from tests.convergence.runs import COMPACTED, moment
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster
from tests.support.fake_launcher import Program

_WORKERS: Final = 3
_SCRIPT: Final = "/part.sh"


@attrs.define
class _Requests:
    """The expected number of workers after all successful requests."""

    by_name: dict[str, int] = attrs.field(factory=dict)

    def total(self, stage: ElasticHarness) -> int:
        done = (n for name, n in self.by_name.items() if succeeded(stage, name))
        return _WORKERS + sum(done)


async def run_chaos(seed: int) -> None:
    """Kill workers and controllers during requests; then check the outcome."""
    dice = random.Random(seed)
    async with start_elastic_cluster(COMPACTED.options, gently=False) as stage:
        await stage.running(_WORKERS, worker={"restartPolicy": "Always"})
        stage.launchers.disconnects_s = dice.choice((0.0, 2.0))
        stage.launchers.faults = list(incidents_of(dice))
        stage.launchers.programs[_SCRIPT] = Program(lasts_s=dice.uniform(0, 5))
        asked = _Requests()
        async with asyncio.TaskGroup() as group:
            group.create_task(arm_faults(stage, dice))
            group.create_task(_submit(stage, dice, asked))
            group.create_task(_end_workers(stage, dice))
            await _work_through_kills(stage, dice)
        for name in asked.by_name:
            await stage.scaler_result(name)
        await stage.cluster.until(lambda: len(stage.listed()) == asked.total(stage))
        await stage.cluster.settled()
        assert stage.is_consistent(), f"hosts, files and pods differ:\n{stage.cluster.dump()}"
        assert len(stage.members()) == asked.total(stage)


async def arm_faults(stage: ElasticHarness, dice: random.Random) -> None:
    """Add random faults at random times, and remove them in the end."""
    began = stage.cluster.clock.monotonic()
    for at_s, fault in sorted(faults_of(dice), key=lambda timed: timed[0]):
        await asyncio.sleep(max(0.0, began + at_s - stage.cluster.clock.monotonic()))
        stage.cluster.server.faults.add(fault)
    await asyncio.sleep(COMPACTED.faults_s)
    stage.cluster.server.faults.clear()


async def _submit(stage: ElasticHarness, dice: random.Random, asked: _Requests) -> None:
    for number in range(dice.randint(2, 5)):
        await asyncio.sleep(dice.uniform(1.1, 4))
        name = f"s{number}"
        resource, spec, change = _request(stage, dice)
        if dice.random() < 0.3:
            spec |= {"script": _SCRIPT, "backoffLimit": 3}
        asked.by_name[name] = change
        await stage.scale(resource, name, JOB, spec)


def _request(stage: ElasticHarness, dice: random.Random) -> tuple[Resource, JSON, int]:
    members = stage.members()
    match dice.choice(("out", "out", "in", "names")):
        case "out":
            count = dice.randint(1, 2)
            return SCALE_OUTS, {"toAdd": {"count": count}}, count
        case "names" if members:
            names = [f"{JOB}-worker-{dice.choice(members)}"]
            return SCALE_INS, {"toDelete": {"podNames": names}}, -1
        case _:
            return SCALE_INS, {"toDelete": {"count": 1}}, -1


async def _end_workers(stage: ElasticHarness, dice: random.Random) -> None:
    for _ in range(dice.randint(0, 4)):
        await asyncio.sleep(dice.uniform(0.5, 6))
        if workers := stage.workers():
            pod = f"{JOB}-worker-{dice.choice(workers)}"
            code = dice.choice((1, 137, None))
            await (stage.remove(pod) if code is None else stage.end(pod, code))


async def _work_through_kills(stage: ElasticHarness, dice: random.Random) -> None:
    for _ in range(dice.randint(0, 3)):
        kill = Kill(dice.randint(0, 30), dice.randint(0, 30), dice.choice((0.0, 2.0)))
        await moment(stage.cluster, kill, COMPACTED.faults_s)
        await stage.cluster.kill_all()
        await asyncio.sleep(kill.down_s)
        stage.cluster.start()


def succeeded(stage: ElasticHarness, name: str) -> bool:
    return str(stage.scaler(name).get("phase")) == "ScaleSucceeded"

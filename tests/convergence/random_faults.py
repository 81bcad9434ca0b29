"""Random faults of the API server, and random kills of controllers, for a while."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.faults import Fault
from tests.convergence.cases import Kill, of_lists, of_requests, of_watches
from tests.convergence.runs import COMPACTED, moment
from tests.support.harness import ClusterHarness
from tests.support.running_controller import RunningController
from tests.support.timing import LoopClock

# Of clocks of different machines.
SKEWS: Final = (0.0, 0.0, -30.0, 30.0, -3600.0, 3600.0)


async def inject_faults(
    cluster: ClusterHarness, dice: random.Random, verbs: Sequence[str], resources: Sequence[str]
) -> None:
    """Add up to 15 faults of these verbs and resources, and remove them in the end."""
    for _ in range(dice.randint(0, 15)):
        await asyncio.sleep(dice.uniform(0, 1.5))
        cluster.server.faults.add(_fault(dice, verbs, resources))
    await asyncio.sleep(COMPACTED.faults_s)
    cluster.server.faults.clear()


def _fault(dice: random.Random, verbs: Sequence[str], resources: Sequence[str]) -> Fault:
    verb, kinds = dice.choice(verbs), {"watch": of_watches, "list": of_lists}
    kind = dice.choice(list(kinds.get(verb, of_requests)(dice)))
    where: JSON = {"verb": verb, "resource": dice.choice(resources), "times": dice.randint(1, 3)}
    return Fault(user_agent="dlctl", **where, **kind)


async def delay_writes(cluster: ClusterHarness, dice: random.Random) -> None:
    """Let a few writes take effect after their senders have given up on them."""
    for _ in range(dice.choice((0, 0, 3, 6))):
        await asyncio.sleep(dice.uniform(0, 3))
        late_s = dice.uniform(0.01, 5)
        cluster.server.faults.add(Fault(user_agent="dlctl", verb="write", late_s=late_s))


async def kill_controllers(
    cluster: ClusterHarness, dice: random.Random, *, ahead_s: Sequence[float] = (0.0,)
) -> None:
    """Start and kill up to three controllers; the last one goes on.

    The clock of each is ahead of that of the cluster by one of ``ahead_s``.
    """
    for _ in range(dice.randint(0, 3)):
        controller = _start(cluster, dice, ahead_s)
        kill = Kill(dice.randint(0, 40), dice.randint(0, 30), dice.uniform(0, 3))
        await moment(cluster, kill, COMPACTED.faults_s)
        await controller.kill()
        await asyncio.sleep(kill.down_s)
    _start(cluster, dice, ahead_s)


def _start(
    cluster: ClusterHarness, dice: random.Random, ahead_s: Sequence[float]
) -> RunningController:
    if len(ahead_s) > 1:
        cluster.clock = LoopClock(dice.choice(ahead_s))
    return cluster.start()

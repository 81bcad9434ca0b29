"""Random faults of the API server, and random kills of controllers, for a while."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from dlctl.local.apiserver.faults import Fault
from tests.convergence.cases import Kill, of_lists, of_requests, of_watches
from tests.convergence.runs import COMPACTED, moment
from tests.support.harness import ClusterHarness

JSON = dict[str, Any]


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


async def kill_controllers(cluster: ClusterHarness, dice: random.Random) -> None:
    """Start and kill up to three controllers; the last one goes on."""
    for _ in range(dice.randint(0, 3)):
        controller = cluster.start()
        kill = Kill(dice.randint(0, 40), dice.randint(0, 30), dice.uniform(0, 3))
        await moment(cluster, kill, COMPACTED.faults_s)
        await controller.kill()
        await asyncio.sleep(kill.down_s)
    cluster.start()

"""Resource limits of containers, where the machine enforces them."""

import os

import pytest

from dlctl.local.node.containers.control_groups import ROOT, open_groups
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, container

GREEDY = "data = bytearray(200 << 20); print('survived')"


def _enforced(controller: str) -> bool:
    groups = open_groups()
    groups.close()
    return controller in groups.parents


def groups_of_containers() -> list[str]:
    """Return the groups of this process's nodes; others come and go meanwhile."""
    name = f"/dlctl-node-{os.getpid()}-"
    return [path for path, _, _ in os.walk(ROOT) if name in os.path.dirname(path)]


pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not _enforced("memory"), reason="dlctl may create no control groups"),
]


async def test_container_beyond_its_memory_limit_is_killed_and_says_so(
    harness: NodeHarness,
) -> None:
    limits = {"limits": {"memory": "64Mi"}}
    main = make_container(command=["python3", "-c", GREEDY], resources=limits)
    status = await harness.run("greedy", containers=[main])
    ended = container(status)["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert await harness.log("greedy") == ""


async def test_container_within_its_limits_succeeds(harness: NodeHarness) -> None:
    limits = {"limits": {"memory": "400Mi", "cpu": "1"}}
    main = make_container(command=["python3", "-c", GREEDY], resources=limits)
    status = await harness.run("modest", containers=[main])
    assert container(status)["state"]["terminated"]["reason"] == "Completed"
    assert groups_of_containers() == []


@pytest.mark.skipif(not _enforced("cpu"), reason="dlctl may limit no CPU time")
async def test_command_beside_the_program_shares_its_cpu_limit(harness: NodeHarness) -> None:
    script = "grep -E 'cpu:|^0::' /proc/self/cgroup"
    limits = {"limits": {"cpu": "250m"}}
    main = make_container(command=["sh", "-c", script], resources=limits)
    await harness.run("limited", containers=[main])
    assert "dlctl-node-" in await harness.log("limited")

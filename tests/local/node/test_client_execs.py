"""The client's own commands in containers of the embedded cluster."""

import asyncio
from pathlib import Path

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.kube.errors import ApiError, DeadlineError, NotFoundError, UnreachableError
from dlctl.kube.execs import Completed
from dlctl.reconcilers.elastic.shell import LauncherShell
from tests.local.node.lab import Lab
from tests.local.node.talks import start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def run(
    lab: Lab, name: str, script: str, *, stdin: bytes = b"", timeout_s: float = 10.0
) -> Completed:
    command = ["sh", "-c", script]
    return await lab.client.execute(
        ObjectKey("default", name), "main", command, stdin=stdin, timeout_s=timeout_s
    )


async def test_client_runs_a_command_and_learns_how_it_ended(lab: Lab) -> None:
    await start(lab, "asked")
    assert await run(lab, "asked", "echo out; echo err >&2; exit 3") == Completed(
        3, b"out\n", b"err\n"
    )
    assert await run(lab, "asked", "wc -c", stdin=b"x" * 100_000) == Completed(0, b"100000\n")


async def test_client_learns_why_a_command_cannot_run(lab: Lab) -> None:
    with pytest.raises(NotFoundError, match='pods "nobody" not found'):
        await run(lab, "nobody", "true")
    await start(lab, "narrow")
    key = ObjectKey("default", "narrow")
    with pytest.raises(ApiError, match="container other is not valid for pod narrow"):
        await lab.client.execute(key, "other", ["true"])
    with pytest.raises(ApiError, match="no-such-program"):
        await lab.client.execute(key, "main", ["no-such-program"])


async def test_command_ends_when_its_time_is_up(lab: Lab) -> None:
    await start(lab, "slow")
    with pytest.raises(DeadlineError):
        await run(lab, "slow", "echo $$ > pid; exec sleep 1000", timeout_s=0.3)
    script = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done"
    assert (await run(lab, "slow", script)).exit_code == 0


async def test_command_in_a_pod_that_is_deleted_neither_succeeds_nor_hangs(lab: Lab) -> None:
    await start(lab, "doomed")
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(_exit_code(lab, "doomed", "trap '' TERM; sleep 1000"))
        await lab.delete("doomed", grace_period_s=0)
    assert running.result() != 0


async def _exit_code(lab: Lab, name: str, script: str) -> int:
    try:
        return (await run(lab, name, script)).exit_code
    except (ApiError, UnreachableError):
        return -1


async def test_launcher_is_spoken_to(lab: Lab, tmp_path: Path) -> None:
    await start(lab, "launcher")
    key = ObjectKey("default", "launcher")
    shell = LauncherShell(lab.client.execute, key, "main")
    path, text = f"{tmp_path}/hostfile", "".join(f"worker-{i}:1\n" for i in range(1000))
    await shell.deliver({path: text}, 1)
    assert (await run(lab, "launcher", f"cat {path}")).stdout.decode() == text

    workers = {"worker-1": "", "worker-10": "192.0.2.10"}
    assert await shell.users(workers) == frozenset()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        script = "echo 'sleep 1000; :' > kubexec.sh; exec sh ./kubexec.sh worker-1 true"
        reaching = group.create_task(run(lab, "launcher", script))
        while await shell.users(workers) != {"worker-1"}:  # noqa: ASYNC110
            await asyncio.sleep(0)
        reaching.cancel()
        while await shell.users(workers):  # noqa: ASYNC110
            await asyncio.sleep(0)

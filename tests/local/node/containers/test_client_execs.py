"""The client's own commands in containers of the embedded cluster."""

import asyncio
from pathlib import Path

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.kube.errors import ApiError, DeadlineExceededError, NotFoundError, UnreachableError
from dlctl.kube.streams.execs import ExecResult
from dlctl.reconcilers.membership.launcher_shell import LauncherShell
from tests.local.node.exec_streams import start
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def run(
    harness: NodeHarness, name: str, script: str, *, stdin: bytes = b"", timeout_s: float = 10.0
) -> ExecResult:
    command = ["sh", "-c", script]
    return await harness.client.execute(
        ObjectKey("default", name), "main", command, stdin=stdin, timeout_s=timeout_s
    )


async def test_client_runs_a_command_and_learns_how_it_ended(harness: NodeHarness) -> None:
    await start(harness, "asked")
    assert await run(harness, "asked", "echo out; echo err >&2; exit 3") == ExecResult(
        3, b"out\n", b"err\n"
    )
    assert await run(harness, "asked", "wc -c", stdin=b"x" * 100_000) == ExecResult(0, b"100000\n")


async def test_client_gets_the_reason_why_a_command_cannot_run(harness: NodeHarness) -> None:
    with pytest.raises(NotFoundError, match='pods "nobody" not found'):
        await run(harness, "nobody", "true")
    await start(harness, "narrow")
    key = ObjectKey("default", "narrow")
    with pytest.raises(ApiError, match="container other is not valid for pod narrow"):
        await harness.client.execute(key, "other", ["true"])
    with pytest.raises(ApiError, match="no-such-program"):
        await harness.client.execute(key, "main", ["no-such-program"])


async def test_command_ends_at_its_timeout(harness: NodeHarness) -> None:
    await start(harness, "slow")
    with pytest.raises(DeadlineExceededError):
        await run(harness, "slow", "echo $$ > pid; exec sleep 1000", timeout_s=0.3)
    script = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done"
    assert (await run(harness, "slow", script)).exit_code == 0


async def test_command_in_a_pod_that_is_deleted_neither_succeeds_nor_hangs(
    harness: NodeHarness,
) -> None:
    await start(harness, "doomed")
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(_exit_code(harness, "doomed", "trap '' TERM; sleep 1000"))
        await harness.delete("doomed", grace_period_s=0)
    assert running.result() != 0


async def _exit_code(harness: NodeHarness, name: str, script: str) -> int:
    try:
        return (await run(harness, name, script)).exit_code
    except (ApiError, UnreachableError):
        return -1


async def test_launcher_shell_works_on_a_local_pod(harness: NodeHarness, tmp_path: Path) -> None:
    await start(harness, "launcher")
    key = ObjectKey("default", "launcher")
    shell = LauncherShell(harness.client.execute, key, "main")
    path, text = f"{tmp_path}/hostfile", "".join(f"worker-{i}:1\n" for i in range(1000))
    await shell.write_files({path: text}, 1)
    assert (await run(harness, "launcher", f"cat {path}")).stdout.decode() == text

    workers = {"worker-1": "", "worker-10": "192.0.2.10"}
    assert await shell.workers_in_use(workers) == frozenset()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        script = "echo 'sleep 1000; :' > kubexec.sh; exec sh ./kubexec.sh worker-1 true"
        reaching = group.create_task(run(harness, "launcher", script))
        while await shell.workers_in_use(workers) != {"worker-1"}:  # noqa: ASYNC110
            await asyncio.sleep(0)
        reaching.cancel()
        while await shell.workers_in_use(workers):  # noqa: ASYNC110
            await asyncio.sleep(0)

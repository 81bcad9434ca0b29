"""Exec into containers, as by kubectl and Python clients."""

import asyncio
import os

import pytest

from dlctl.api.meta import ObjectKey
from dlctl.local.node.containers.exec_streams import terminal
from tests.local.node.exec_streams import V4, V5, open_exec, refusal, run, start
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("protocol", [V4, V5])
async def test_command_runs_in_the_container_with_separate_outputs(
    harness: NodeHarness, protocol: str
) -> None:
    name = f"said-{protocol[:2]}"
    await start(harness, name, env=[{"name": "COLOUR", "value": "red"}], workingDir="/usr")
    script = "echo $COLOUR $HOSTNAME; pwd; echo wrong >&2"
    status, said = await run(harness, name, "sh", "-c", script, protocol=protocol)
    assert status["status"] == "Success"
    assert said.out == f"red {name}\n/usr\n"
    assert said.output[2] == b"wrong\n"


async def test_exit_code_is_returned(harness: NodeHarness) -> None:
    await start(harness, "code")
    status, _ = await run(harness, "code", "sh", "-c", "exit 3")
    assert (status["reason"], status["details"]["causes"]) == (
        "NonZeroExitCode",
        [{"reason": "ExitCode", "message": "3"}],
    )


async def test_input_is_passed_on_and_closed(harness: NodeHarness) -> None:
    await start(harness, "input")
    async with open_exec(harness, "input", "sh", "-c", "cat; echo end", stdin="true") as said:
        for part in (b"a" * 100_000, b"b\n"):
            await said.socket.send_bytes(b"\0" + part)
        await said.socket.send_bytes(b"\xff\0")
        status = await said.end()
    assert status["status"] == "Success"
    assert said.out == "a" * 100_000 + "b\nend\n"


async def test_input_of_megabytes_may_be_one_message(harness: NodeHarness) -> None:
    await start(harness, "large")
    async with open_exec(harness, "large", "wc", "-c", stdin="true") as said:
        await said.socket.send_bytes(b"\0" + b"a" * (5 << 20))
        await said.socket.send_bytes(b"\xff\0")
        assert (await said.end())["status"] == "Success"
    assert said.out.strip() == str(5 << 20)


async def test_command_without_stdin_does_not_wait_for_input(
    harness: NodeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    await start(harness, "deaf")
    async with open_exec(
        harness, "deaf", "sh", "-c", "exec <&-; echo ready; sleep 0.1", stdin="true"
    ) as said:
        await said.until(b"ready")
        for _ in range(30):
            await said.socket.send_bytes(b"\0" + b"x" * 10_000)
        assert (await said.end())["status"] == "Success"
    # Neither does its input fill the log.
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_command_ends_when_its_client_disconnects(harness: NodeHarness) -> None:
    await start(harness, "left")
    async with open_exec(harness, "left", "sh", "-c", "echo $$; sleep 1000") as said:
        await said.until(b"\n")
    script = f"while kill -0 {said.out.strip()} 2>/dev/null; do sleep 0.02; done; echo gone"
    _, after = await run(harness, "left", "sh", "-c", script)
    assert after.out == "gone\n"


async def test_background_processes_of_a_command_live_until_the_container_ends(
    harness: NodeHarness,
) -> None:
    await start(harness, "daemon")
    script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!"
    _, said = await run(harness, "daemon", "sh", "-c", script)
    status, _ = await run(harness, "daemon", "kill", "-0", said.out.strip())
    assert status["status"] == "Success"
    await harness.delete("daemon")
    await harness.gone("daemon")


async def test_output_held_open_does_not_delay_the_end(harness: NodeHarness) -> None:
    await start(harness, "held")
    status, said = await run(harness, "held", "sh", "-c", "sleep 1000 & echo done")
    assert (status["status"], said.out) == ("Success", "done\n")


async def test_command_ends_with_its_container(harness: NodeHarness) -> None:
    await start(harness, "ends")
    async with open_exec(harness, "ends", "sh", "-c", "echo begun; sleep 1000") as said:
        await said.until(b"begun")
        await harness.delete("ends")
        status = await said.end()
    assert status["details"]["causes"][0]["message"] == "137"


async def test_command_has_a_terminal_that_can_be_resized(harness: NodeHarness) -> None:
    await start(harness, "screen")
    script = "test -t 0 && test -t 2 && echo on a terminal; read line; stty size; echo $line >&2"
    wanted = {"stdin": "true", "tty": "true", "stderr": "false"}
    async with open_exec(harness, "screen", "sh", "-c", script, **wanted) as said:
        await said.until(b"on a terminal")
        await said.socket.send_bytes(b'\4{"Width":123,"Height":45}')
        await said.socket.send_bytes(b"\0typed\n")
        assert (await said.end())["status"] == "Success"
    assert said.out.splitlines() == ["on a terminal", "typed", "45 123", "typed"]


@pytest.mark.parametrize("width", ["65536", "-1", str(1 << 80)])
async def test_size_that_no_terminal_has_is_ignored(harness: NodeHarness, width: str) -> None:
    name = f"wide-{len(width)}{width[-1]}"
    await start(harness, name)
    wanted = {"stdin": "true", "tty": "true", "stderr": "false"}
    async with open_exec(harness, name, "sh", "-c", "read line; exit 7", **wanted) as said:
        await said.socket.send_bytes(f'\4{{"Width":{width},"Height":1}}'.encode())
        await said.socket.send_bytes(b"\0typed\n")
        status = await said.end()
    assert status["details"]["causes"][0]["message"] == "7"


async def test_terminal_whose_programs_have_ended_can_be_resized() -> None:
    async with terminal(stdin=True) as ends:
        program = os.open(ends.paths["stdout"], os.O_RDWR | os.O_NOCTTY)
        streams = await ends.connect()
        os.close(program)
        async with asyncio.timeout(15):
            assert await streams.stdout.read() == b""
        # The file of its output is closed in the next turn of the loop.
        await asyncio.sleep(0)
        streams.resize(80, 24)


async def test_ctrl_c_interrupts_a_command_on_a_terminal(harness: NodeHarness) -> None:
    await start(harness, "interrupted")
    wanted = {"stdin": "true", "tty": "true"}
    command = ("sh", "-c", "trap 'exit 9' INT; echo ready; while true; do sleep 0.02; done")
    async with open_exec(harness, "interrupted", *command, **wanted) as said:
        await said.until(b"ready")
        await said.socket.send_bytes(b"\0\3")
        status = await said.end()
    assert status["details"]["causes"][0]["message"] == "9"


async def test_missing_program_is_named(harness: NodeHarness) -> None:
    await start(harness, "none")
    status, _ = await run(harness, "none", "no-such-program")
    assert status["reason"] == "InternalError"
    assert "no-such-program: No such file or directory" in status["message"]


async def test_terminated_container_runs_no_command(harness: NodeHarness) -> None:
    await harness.run("over")
    status, _ = await run(harness, "over", "true")
    assert status["reason"] == "InternalError"
    assert 'container not found ("main")' in status["message"]


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        pytest.param("absent", {}, (404, 'pods "absent" not found'), id="pod"),
        pytest.param(
            "asked",
            {"container": "x"},
            (400, "container x is not valid for pod asked"),
            id="container",
        ),
        pytest.param(
            "asked",
            {"command": "sh"},
            (400, "you must specify at least 1 of stdin, stdout, stderr"),
            id="streams",
        ),
        pytest.param(
            "asked", {"stdout": "true"}, (400, "you must specify a command"), id="command"
        ),
        pytest.param(
            "asked",
            {"command": "sh", "stdout": "true"},
            (400, "Upgrade request required"),
            id="no upgrade",
        ),
    ],
)
async def test_impossible_exec_is_rejected_before_the_upgrade(
    harness: NodeHarness, name: str, params: dict[str, str], said: tuple[int, str]
) -> None:
    if harness.cluster.node.pods.store.get(ObjectKey("default", "asked")) is None:
        await harness.run("asked")
    assert await refusal(harness, name, **params) == said

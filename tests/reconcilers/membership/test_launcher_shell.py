"""The scripts for launchers, run by the shells of this machine."""

import asyncio
import os
import shutil
import socket
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import attrs
import pytest

from dlctl.api.meta import ObjectKey
from dlctl.api.objects.scalers import Script
from dlctl.errors import TerminalError
from dlctl.kube.streams.execs import ExecResult, OutputLimit
from dlctl.reconcilers.membership import exec_output, exec_requests
from dlctl.reconcilers.membership.exec_output import InspectionError, ProbeMethod, ProbeResult
from dlctl.reconcilers.membership.launcher_shell import CommandFailedError, LauncherShell

pytestmark = pytest.mark.slow

SHELLS = {
    "sh": ["sh"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}
HAD = [name for name, words in SHELLS.items() if shutil.which(words[0])]
NEEDS_FLOCK = pytest.mark.skipif(not shutil.which("flock"), reason="there is no flock here")


@pytest.fixture
def _nothing_blocks() -> None:
    """Allow blocking calls: the launcher consists of local processes."""


@attrs.define
class Machine:
    """Runs commands by a local shell, as a launcher's container would."""

    shell: Sequence[str]
    bin: Path
    env: Mapping[str, str] = attrs.field(factory=dict)
    # Whether stdin can be closed, as in the newer exec protocol.
    closes_stdin: bool = True

    async def __call__(
        self,
        pod: ObjectKey,
        container: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 10.0,
        output_limit: OutputLimit | None = None,
    ) -> ExecResult:
        process = await self.start(command)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(timeout_s):
            process.stdin.write(stdin)
            if self.closes_stdin:
                process.stdin.close()
            out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
            exit_code = await process.wait()
        process.stdin.close()
        return ExecResult(exit_code, out, err)

    async def start(self, command: Sequence[str]) -> asyncio.subprocess.Process:
        assert command[0] == "sh"
        assert sum(map(len, command)) < 4000, "the URL would be too long for a proxy"
        return await asyncio.create_subprocess_exec(
            *[shutil.which(self.shell[0]) or "", *self.shell[1:], *command[1:]],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": f"{self.bin}:{os.environ['PATH']}", **self.env},
        )

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def lacks_all_but(self, *programs: str) -> None:
        for name in programs:
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.env = {"PATH": str(self.bin)}


@pytest.fixture(params=HAD)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    return Machine(SHELLS[request.param], programs)


@pytest.fixture
def launcher(machine: Machine) -> LauncherShell:
    return LauncherShell(machine, ObjectKey("ns", "job-launcher"), "main")


AWKWARD = "a b  c\\n\t'\"$HOME `id` %s\\\n\n  -e * ünï\n"


def files(folder: Path) -> dict[str, str]:
    """Return the files in a folder, without the generation and the lock of deliveries."""
    found = (path for path in folder.iterdir() if path.is_file())
    own = (".generation", ".generation.lock")
    return {path.name: path.read_text() for path in found if path.name not in own}


@pytest.mark.parametrize("closes_stdin", [True, False], ids=["v5", "v4"])
async def test_files_are_delivered_unchanged(
    launcher: LauncherShell, machine: Machine, tmp_path: Path, closes_stdin: bool
) -> None:
    machine.closes_stdin = closes_stdin
    hosts = "".join(f"elastic-training-worker-{index}:8\n" for index in range(1000))
    texts = {"hostfile": hosts, "awk ward'$": AWKWARD, "empty": "", "unended": "x\ny"}
    (tmp_path / "empty").write_text("old\n")
    await launcher.write_files({str(tmp_path / name): text for name, text in texts.items()}, 1)
    assert files(tmp_path) == {**texts, "unended": "x\ny\n"}


async def test_replaced_file_keeps_its_mode_and_a_new_one_is_private(
    launcher: LauncherShell, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    old.chmod(0o640)
    await launcher.write_files({str(old): "a\n", str(new): "b\n"}, 1)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new)] == [0o640, 0o600]


async def test_file_is_replaced_atomically(launcher: LauncherShell, tmp_path: Path) -> None:
    path = tmp_path / "hostfile"
    path.write_text("old\n")
    with path.open() as reader:
        await launcher.write_files({str(path): "new\n"}, 1)
        assert reader.read() == "old\n"


async def test_truncated_input_leaves_the_old_file_and_no_temporary_one(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "hostfile"
    path.write_text("old\n")
    order = exec_requests.write_files({str(path): "a\nb\nc\n"}, 1)
    completed = await machine(ObjectKey("", ""), "", order.command, stdin=b"a\nb\n")
    assert completed.exit_code == 1
    assert files(tmp_path) == {"hostfile": "old\n"}


async def test_unwritable_target_is_reported(launcher: LauncherShell, tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"files failed: exit code 1: .*hostfile"):
        await launcher.write_files({str(tmp_path / "absent" / "hostfile"): "a\n"}, 1)


# The commands of images without util-linux and BusyBox.
COREUTILS = ("cp", "mv", "rm", "mkdir", "rmdir", "sleep")
LOCKS = pytest.mark.parametrize(
    "flocks", [pytest.param(True, marks=NEEDS_FLOCK), False], ids=["flock", "mkdir"]
)


@LOCKS
async def test_late_delivery_does_not_overwrite_newer_files(
    launcher: LauncherShell, machine: Machine, tmp_path: Path, flocks: bool
) -> None:
    if not flocks:
        machine.lacks_all_but(*COREUTILS)
    first, second = str(tmp_path / "hostfile"), str(tmp_path / "other")
    order = exec_requests.write_files({first: "old\nold\n", second: "old\n"}, 7)
    # Only half of its input has arrived; the rest comes later.
    late = await machine.start(order.command)
    assert late.stdin is not None
    late.stdin.write(b"old\nold\n")
    await late.stdin.drain()
    await launcher.write_files({first: "new\n", second: "new\n"}, 8)
    out, _ = await late.communicate(b"old\n")
    assert (late.returncode, out) == (0, b"superseded\n")
    assert files(tmp_path) == {"hostfile": "new\n", "other": "new\n"}
    # The same generation again, and the next one.
    await launcher.write_files({first: "same\n", second: "same\n"}, 8)
    assert files(tmp_path) == {"hostfile": "same\n", "other": "same\n"}
    await launcher.write_files({first: "next\n", second: "next\n"}, 10)
    assert files(tmp_path) == {"hostfile": "next\n", "other": "next\n"}


@LOCKS
async def test_highest_generation_of_concurrent_deliveries_wins(
    launcher: LauncherShell, machine: Machine, tmp_path: Path, flocks: bool
) -> None:
    if not flocks:
        machine.lacks_all_but(*COREUTILS)
    paths = [str(tmp_path / "hostfile"), str(tmp_path / "other")]
    async with asyncio.TaskGroup() as group:
        for generation in (3, 5, 1, 4, 2):
            texts = dict.fromkeys(paths, f"{generation}\n")
            group.create_task(launcher.write_files(texts, generation))
    assert files(tmp_path) == {"hostfile": "5\n", "other": "5\n"}


@pytest.mark.parametrize("kept", ["", "x\n", "-1\n", "9 9\n"])
async def test_unreadable_generation_does_not_block_a_delivery(
    launcher: LauncherShell, tmp_path: Path, kept: str
) -> None:
    (tmp_path / ".generation").write_text(kept)
    await launcher.write_files({str(tmp_path / "hostfile"): "new\n"}, 1)
    assert files(tmp_path) == {"hostfile": "new\n"}


async def test_hosts_without_a_generation_replace_any(
    launcher: LauncherShell, tmp_path: Path
) -> None:
    path = str(tmp_path / "hostfile")
    await launcher.write_files({path: "old\n"}, 7)
    await launcher.write_files({path: "new\n"}, 0)
    assert files(tmp_path) == {"hostfile": "new\n"}


async def test_lock_of_a_killed_delivery_is_released(
    launcher: LauncherShell, machine: Machine, tmp_path: Path
) -> None:
    machine.lacks_all_but(*COREUTILS)
    (tmp_path / ".generation.lock").mkdir()
    path = str(tmp_path / "hostfile")
    with pytest.raises(CommandFailedError, match="another write holds"):
        await launcher.write_files({path: "new\n"}, 1)
    assert files(tmp_path) == {}
    await launcher.write_files({path: "new\n"}, 1)
    assert files(tmp_path) == {"hostfile": "new\n"}
    assert not (tmp_path / ".generation.lock").exists()


FAKE_SSH = """
for host; do :; done; eval host=\\${$(($# - 1))}
case $host in
*-down) echo 'Warning: first' >&2; printf 'ssh: host %s refused\\r\\n' "$host" >&2; exit 255;;
*-odd) cat; exit 0;;
esac"""


@pytest.mark.parametrize("closes_stdin", [True, False], ids=["v5", "v4"])
async def test_probe_reports_reachable_hosts(
    launcher: LauncherShell, machine: Machine, closes_stdin: bool
) -> None:
    machine.closes_stdin = closes_stdin
    machine.program("ssh", FAKE_SSH)
    up = {f"w-{index}" for index in range(40)} | {"w-odd"}
    found = await launcher.probe_workers([*up, "w-down"])
    assert found.reachable == up
    assert found.reasons == {"w-down": "ssh: host w-down refused"}
    assert found.method is ProbeMethod.SSH


async def test_probe_without_ssh_resolves_names(launcher: LauncherShell, machine: Machine) -> None:
    machine.lacks_all_but("getent", "timeout")
    found = await launcher.probe_workers(["localhost", "no-such-host.invalid"])
    assert found.reachable == {"localhost"}
    assert found.reasons == {"no-such-host.invalid": "its name does not resolve"}
    assert found.method is ProbeMethod.NAMES


async def test_probe_without_any_tool_assumes_all_reachable(
    launcher: LauncherShell, machine: Machine
) -> None:
    machine.lacks_all_but()
    found = await launcher.probe_workers(["w-0", "w-1"])
    assert found == ProbeResult(frozenset({"w-0", "w-1"}), method=ProbeMethod.NONE)


async def test_invalid_host_name_reaches_no_shell(launcher: LauncherShell) -> None:
    for name in ("-oProxyCommand=x", "a b", "a;b", "", "a\nb"):
        with pytest.raises(TerminalError):
            await launcher.probe_workers([name])


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[int]:
    """Yield the port of an open connection."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as listener, socket.socket(family) as caller:
        listener.bind((address, 0))
        listener.listen()
        caller.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with closing(accepted):
            yield listener.getsockname()[1]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_open_connections_are_found(machine: Machine, address: str) -> None:
    order = exec_requests.list_connections()
    async with connected(address) as port:
        completed = await machine(ObjectKey("", ""), "", order.command)
    workers = {"one": address, "other": "127.9.9.9"}
    read = partial(exec_output.parse_workers_in_use, completed.stdout, workers)
    assert read(port=port) == {"one"}
    assert read(port=9) == frozenset()


async def test_remote_shells_to_workers_are_found(
    launcher: LauncherShell, machine: Machine
) -> None:
    machine.program("kubexec.sh", "read line")
    # All processes of this machine are looked at, also those of tests that run beside this one.
    worker = f"w{os.getpid()}-1"
    workers = {worker: "", f"{worker}0": ""}
    process = await asyncio.create_subprocess_exec(
        str(machine.bin / "kubexec.sh"), worker, "sleep", stdin=asyncio.subprocess.PIPE
    )
    try:
        assert await launcher.workers_in_use(workers) == {worker}
    finally:
        process.kill()
        await process.wait()
    assert await launcher.workers_in_use(workers) == frozenset()


async def test_failed_inspection_does_not_mean_disconnected(
    launcher: LauncherShell, machine: Machine
) -> None:
    machine.lacks_all_but("cat")
    with pytest.raises(InspectionError):
        await launcher.workers_in_use({"w-1": ""})


async def test_truncated_output_is_not_taken_as_complete() -> None:
    async def execute(*_: object, **__: object) -> ExecResult:
        return ExecResult(0, b"rem_address\n\n==> /proc/1/cmdline <==\n", is_truncated=True)

    with pytest.raises(InspectionError):
        await LauncherShell(execute, ObjectKey("ns", "x"), "main").workers_in_use({"w-1": ""})


@pytest.mark.parametrize("closes_stdin", [True, False], ids=["v5", "v4"])
async def test_script_gets_the_workers_and_its_variables(
    launcher: LauncherShell, machine: Machine, tmp_path: Path, closes_stdin: bool
) -> None:
    machine.closes_stdin = closes_stdin
    path = tmp_path / "my script.sh"
    path.write_text(f'cd \'{tmp_path}\'; printf %s "$1" >list; printf %s "$A" >a; cat >stdin')
    value = "$(id) 'x'\n\"y\" ; exit 1"
    script = Script(str(path), env=(("A", value), ("B_2", "")))
    workers = [f"elastic-training-worker-{index}:8" for index in range(1000)]
    await launcher.run_script(script, workers)
    assert (tmp_path / "list").read_text() == ",".join(workers)
    assert (tmp_path / "a").read_text() == value
    assert (tmp_path / "stdin").read_text() == ""


async def test_link_into_proc_is_rejected_as_a_script(
    launcher: LauncherShell, tmp_path: Path
) -> None:
    path = tmp_path / "link.sh"
    path.symlink_to("/proc/self/environ")
    with pytest.raises(CommandFailedError, match="leads to /proc or /dev"):
        await launcher.run_script(Script(str(path)), [])


async def test_failed_script_reports_why(launcher: LauncherShell, tmp_path: Path) -> None:
    path = tmp_path / "fails.sh"
    path.write_text("echo one >&2; echo 'no room' >&2; exit 3")
    with pytest.raises(CommandFailedError, match=r"fails\.sh failed: exit code 3: no room$"):
        await launcher.run_script(Script(str(path)), ["w-0:1"])


async def test_script_is_killed_at_its_timeout(
    launcher: LauncherShell, machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "slow.sh"
    path.write_text("exec sleep 1000")
    # A tenth of the script's second; the try of the program itself keeps its five.
    seconds = 'case $1 in 1) shift; set -- 0.1 "$@";; esac'
    machine.program("timeout", f'{seconds}; exec {shutil.which("timeout")} "$@"')
    with pytest.raises(CommandFailedError, match="exit code 124"):
        await launcher.run_script(Script(str(path), timeout_s=1), ["w-0:1"])


async def test_script_runs_without_the_timeout_command(
    launcher: LauncherShell, machine: Machine, tmp_path: Path
) -> None:
    machine.lacks_all_but("sh", "cat")
    path = tmp_path / "plain.sh"
    path.write_text("cat; exit 4")
    with pytest.raises(CommandFailedError, match="exit code 4"):
        await launcher.run_script(Script(str(path)), [])


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A;id", "A\n"])
async def test_invalid_variable_name_reaches_no_shell(launcher: LauncherShell, name: str) -> None:
    with pytest.raises(TerminalError):
        await launcher.run_script(Script("/x.sh", env=((name, "x"),)), [])

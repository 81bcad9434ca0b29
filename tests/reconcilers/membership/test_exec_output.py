import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.api.meta import ObjectKey
from dlctl.kube.streams.execs import ExecResult
from dlctl.reconcilers.membership.exec_output import (
    InspectionError,
    ProbeMethod,
    ProbeResult,
    parse_probe,
    parse_workers_in_use,
)
from dlctl.reconcilers.membership.exec_requests import MAX_CMDLINE_CHARS
from dlctl.reconcilers.membership.launcher_shell import LauncherShell

TITLE = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"


def kernel_spelling(address: str) -> str:
    """Return the address as a little-endian kernel writes it: word by word."""
    packed = ipaddress.ip_address(address).packed
    return b"".join(packed[i : i + 4][::-1] for i in range(0, len(packed), 4)).hex().upper()


def row(address: str, port: int = 22, state: str = "01") -> str:
    return f"   0: 0100007F:A1B2 {kernel_spelling(address)}:{port:04X} {state} 00000000:00000000\n"


def proc_output(
    rows: Sequence[str] = (), processes: Sequence[Sequence[str]] = (("sleep",),)
) -> bytes:
    """Return the output of a launcher with these connections and programs."""
    words = [b"".join(word.encode() + b"\0" for word in process) for process in processes]
    titled = [b"==> /proc/%d/cmdline <==\n%s" % item for item in enumerate(words, start=1)]
    return f"{TITLE}{''.join(rows)}\n".encode() + b"\n".join(titled)


@pytest.mark.parametrize(
    ("spelt", "address"),
    [
        pytest.param("0A64000A:0016", "10.0.100.10", id="IPv4"),
        pytest.param("0000000000000000FFFF00000A64000A:0016", "10.0.100.10", id="IPv4 in IPv6"),
        pytest.param("B80D01200000000000000000010000AB:0016", "2001:db8::ab00:1", id="IPv6"),
    ],
)
def test_addresses_are_decoded_from_proc_net_tcp(spelt: str, address: str) -> None:
    output = proc_output([f"  1: 0100007F:A1B2 {spelt} 01 00000000:00000000\n"])
    assert parse_workers_in_use(output, {"w": address}) == {"w"}


@pytest.mark.parametrize(
    ("state", "used"),
    [("01", True), ("02", True), ("03", True), ("06", False), ("08", False), ("0A", False)],
    ids=["established", "calling", "called", "over", "hung up", "listening"],
)
def test_only_open_connections_count(state: str, used: bool) -> None:
    assert (
        bool(parse_workers_in_use(proc_output([row("10.0.0.1", state=state)]), {"w": "10.0.0.1"}))
        is used
    )


addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(0, 200).map("job-worker-{}".format), addresses, max_size=8),
    st.lists(
        st.tuples(st.integers(0, 9), addresses, st.sampled_from([22, 23, 2222]), st.booleans()),
        max_size=8,
    ),
)
def test_worker_with_an_open_connection_to_its_port_is_in_use(
    workers: dict[str, str], connections: list[tuple[int, str, int, bool]]
) -> None:
    known = list(workers.values())
    rows, peers = [], set()
    for choice, other, port, is_open in connections:
        address = known[choice] if choice < len(known) else other
        rows.append(row(address, port, "01" if is_open else "06"))
        if is_open and port == 22:
            peers.add(unmapped(address))
    expected = {name for name, address in workers.items() if unmapped(address) in peers}
    assert parse_workers_in_use(proc_output(rows), workers) == expected


def unmapped(address: str) -> object:
    read = ipaddress.ip_address(address)
    return getattr(read, "ipv4_mapped", None) or read


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(["/opt/kube/kubectl", "exec", "w-1", "--", "sh", "-c", "x"], id="kubectl"),
        pytest.param(["kubectl", "-n", "ns", "exec", "-i", "w-1", "-c", "m", "id"], id="options"),
        pytest.param(["kubectl", "exec", "pod/w-1", "--", "true"], id="kind"),
        pytest.param(["/bin/sh", "/etc/mpi/kubexec.sh", "w-1", "orted w-10"], id="kubexec.sh"),
        pytest.param(["/etc/mpi/kubexec.sh", "w-1"], id="kubexec.sh itself"),
        pytest.param(["ssh", "-o", "BatchMode=yes", "-T", "-p22", "w-1", "cd w-10"], id="ssh"),
        pytest.param(["/usr/bin/ssh", "root@w-1"], id="ssh as a user"),
    ],
)
def test_worker_named_by_a_remote_shell_is_in_use(process: list[str]) -> None:
    workers = {"w-1": "", "w-10": "10.0.0.10", "1": "", "w": ""}
    assert parse_workers_in_use(proc_output(processes=[["sleep", "9"], process]), workers) == {
        "w-1"
    }


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(["python", "w-1"], id="another program"),
        pytest.param(["kubectl", "get", "w-1"], id="another verb"),
        pytest.param(["kubectl", "exec", "other", "--", "ssh", "w-1"], id="within the command"),
        pytest.param(["ssh", "-l", "w-1", "other", "w-1"], id="value of an option"),
        pytest.param(["ssh"], id="none"),
        pytest.param(["kubexec.sh"], id="none either"),
    ],
)
def test_worker_name_elsewhere_in_a_command_does_not_count(process: list[str]) -> None:
    assert (
        parse_workers_in_use(proc_output(processes=[process]), {"w-1": "10.0.0.1"}) == frozenset()
    )


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 120), max_size=6, unique=True),
    st.lists(st.integers(0, 120), min_size=1, max_size=6, unique=True),
    st.sampled_from([["kubectl", "exec"], ["sh", "kubexec.sh"], ["ssh", "-T"]]),
)
def test_worker_names_with_a_common_prefix_are_not_confused(
    reached: list[int], workers: list[int], program: list[str]
) -> None:
    processes = [["sleep"], *([*program, f"w-{index}", "--", "w-1"] for index in reached)]
    found = parse_workers_in_use(
        proc_output(processes=processes), {f"w-{index}": "" for index in workers}
    )
    assert found == {f"w-{index}" for index in {*reached} & {*workers}}


def test_truncated_name_is_not_mistaken_for_a_shorter_one() -> None:
    output = proc_output(processes=[["kubectl", "exec"]]) + b"w-1"
    assert parse_workers_in_use(output, {"w-1": ""}) == frozenset()


@pytest.mark.parametrize("output", [b"", b"\n==> /proc/1/cmdline <==\nsh\0", f"{TITLE}\n".encode()])
def test_empty_output_does_not_mean_disconnected(output: bytes) -> None:
    with pytest.raises(InspectionError):
        parse_workers_in_use(output, {"w": "10.0.0.1"})


def test_probe_output_lists_reachable_workers_and_why_others_are_not() -> None:
    output = (
        b"by ssh\nok a\nno b ssh: connect to host b port 22: Connection refused\r\nno c \nok x\n"
    )
    assert parse_probe(output, ["a", "b", "c", "d"]) == ProbeResult(
        frozenset({"a"}),
        {
            "b": "ssh: connect to host b port 22: Connection refused",
            "c": "it did not respond in time",
            "d": "it was not probed",
        },
        ProbeMethod.SSH,
    )


_LAUNCHER_BYTES = 4 << 20
_PROCESS = b"\n==> /proc/1/cmdline <==\n"


@pytest.mark.parametrize(
    ("repeated", "end"),
    [
        pytest.param(b"0 0 0100000A:0016 01\n", _PROCESS, id="connections"),
        pytest.param(b"\n", _PROCESS, id="empty rows"),
        pytest.param(_PROCESS + b"ssh\0a\0", b"", id="processes"),
    ],
)
def test_endless_lists_of_a_launcher_are_not_read(repeated: bytes, end: bytes) -> None:
    output = b"rem_address\n" + repeated * (_LAUNCHER_BYTES // len(repeated)) + end
    with pytest.raises(InspectionError, match="too many"):
        parse_workers_in_use(output, {"w": "10.0.0.1"})


@pytest.mark.parametrize(
    "peer",
    [
        pytest.param(b"zz:0016", id="no address"),
        pytest.param(b"0100000A:zz", id="no port"),
        pytest.param(b"\xff:0016", id="no text"),
        pytest.param(b"0" * 8000 + b":0016", id="long address"),
    ],
)
def test_malformed_connection_is_that_of_no_worker(peer: bytes) -> None:
    output = b"rem_address\n0 0 %s 01\n%ssh\0" % (peer, _PROCESS)
    assert parse_workers_in_use(output, {"w": "10.0.0.1"}) == frozenset()


def test_command_line_is_read_as_far_as_it_was_requested() -> None:
    output = b"rem_address\n%ssh\0kubexec.sh\0%s\0w\0" % (_PROCESS, b"x" * MAX_CMDLINE_CHARS)
    output += b"".join([_PROCESS, b"\0" * _LAUNCHER_BYTES])
    assert parse_workers_in_use(output, {"w": ""}) == frozenset()


def test_only_the_first_words_of_a_command_line_are_read() -> None:
    words = b"ssh\0%sw\0"
    few, many = (b"rem_address\n%s%s" % (_PROCESS, words % (b"-T\0" * n)) for n in (62, 63))
    assert parse_workers_in_use(few, {"w": ""}) == {"w"}
    assert parse_workers_in_use(many, {"w": ""}) == frozenset()


async def test_long_list_of_a_launcher_is_read_beside_the_loop() -> None:
    output = b"rem_address\n%s" % (_PROCESS + b"ssh\0w\0" + b"x\0" * 200) * 400
    ticks = 0

    async def execute(*args: Any, **options: Any) -> ExecResult:
        return ExecResult(0, output)

    async def tick() -> None:
        nonlocal ticks
        ticks += 1

    ticking = asyncio.create_task(tick())
    shell = LauncherShell(execute, ObjectKey("ns", "job-launcher"), "main")
    assert await shell.workers_in_use({"w": "", "v": ""}) == {"w"}
    assert ticks
    await ticking


def test_unknown_method_and_long_reason_of_a_probe_are_bounded() -> None:
    found = parse_probe(b"by \xff" + b"x" * 60_000 + b"\nno a " + b"y" * 60_000, ["a"])
    assert found.method is ProbeMethod.SSH
    assert len(found.reasons["a"]) == 200


def test_endless_lines_of_a_probe_are_not_read() -> None:
    found = parse_probe(b"\n" * _LAUNCHER_BYTES + b"ok a\n", ["a"])
    assert found.reasons == {"a": "it was not probed"}

"""Decodes the output of commands in a launcher: reachable workers, and workers in use. Pure."""

import enum
import io
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import attrs

from dlctl.errors import DlctlError, truncated
from dlctl.reconcilers.membership.exec_requests import MAX_CMDLINE_CHARS

SSH_PORT: Final = 22
# SYN_SENT, ESTABLISHED and SYN_RECV as the kernel numbers them.
_OPEN_STATES: Final = frozenset({b"01", b"02", b"03"})
_PROCESS_HEADER: Final = re.compile(rb"\n==> /proc/\d+/cmdline <==\n")
# The output may be anything: a launcher's image is the tenant's.
_MAX_ROWS: Final = 20_000
_MAX_PROCESSES: Final = 4096
# The words read of a process's command line; the name of its target is among the first.
_MAX_WORDS: Final = 64
_MAX_REASON_CHARS: Final = 200
# Lines of a probe that name no worker, such as warnings of a shell.
_MAX_OTHER_LINES: Final = 100
_SSH_OPTIONS_WITH_VALUE: Final = b"BbcDEeFIiJLlmOopQRSWw"
_IPV4_BYTES: Final = 4
_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"


class InspectionError(DlctlError):
    """The launcher cannot be inspected: its image lacks the programs, or it runs too many."""


class ProbeMethod(enum.StrEnum):
    """How the launcher probed the workers; with ``nothing``, all of them count as reachable."""

    SSH = "ssh"
    NAMES = "names"
    NONE = "nothing"


_METHODS: Final = {method.value: method for method in ProbeMethod}


@attrs.frozen
class ProbeResult:
    """The workers that the launcher can reach, and known reasons why it cannot reach others."""

    reachable: frozenset[str]
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    method: ProbeMethod = ProbeMethod.SSH


def parse_probe(output: bytes, workers: Collection[str]) -> ProbeResult:
    """Decode the output of a probe; a worker that it does not list is unreachable."""
    reachable: set[str] = set()
    reasons = dict.fromkeys(workers, "it was not probed")
    method = ProbeMethod.SSH
    for line in islice(io.BytesIO(output), len(workers) + _MAX_OTHER_LINES):
        result, _, rest = line.decode(errors="replace").strip().partition(" ")
        worker, _, reason = rest.partition(" ")
        if result == "by":
            method = _METHODS.get(rest, method)
        elif result == "ok" and worker in reasons:
            reachable.add(worker)
            del reasons[worker]
        elif result == "no" and worker in reasons:
            reasons[worker] = truncated(reason, _MAX_REASON_CHARS) or "it did not respond in time"
    return ProbeResult(frozenset(reachable), reasons, method)


def parse_workers_in_use(
    output: bytes, workers: Mapping[str, str], *, port: int = SSH_PORT
) -> frozenset[str]:
    """Return which of the workers (addresses by name) the launcher uses.

    It uses a worker if it is connected or connecting to the worker's sshd, or runs a program whose
    target is the worker's name. A worker without an address is matched by name only.
    """
    sockets, *processes = _PROCESS_HEADER.split(output, _MAX_PROCESSES)
    if b"rem_address" not in sockets or not processes:
        raise InspectionError("the launcher's image cannot list its connections")
    if len(processes) == _MAX_PROCESSES or sockets.count(b"\n") > _MAX_ROWS:
        raise InspectionError("the launcher has too many processes or connections to inspect")
    peers = set(_peers(sockets, port))
    named = {name for process in processes for name in _targets(_argv(process))}
    return frozenset(
        worker
        for worker, address in workers.items()
        if worker.encode() in named or (address and not peers.isdisjoint(_kernel_forms(address)))
    )


def _peers(table: bytes, port: int) -> Iterator[bytes]:
    """Yield the peers of the connections to the port in ``/proc/net/tcp`` and ``tcp6``."""
    suffix = b":%04X" % port
    for row in io.BytesIO(table):
        columns = row.split(None, 4)
        if len(columns) > 3 and columns[3] in _OPEN_STATES and columns[2].endswith(suffix):
            yield columns[2].removesuffix(suffix)


def _kernel_forms(text: str) -> Iterator[bytes]:
    """Yield an address as ``/proc/net/tcp`` and ``tcp6`` list it; IPv4 may be mapped to IPv6."""
    address = ipaddress.ip_address(text)
    packed = (getattr(address, "ipv4_mapped", None) or address).packed
    for form in (packed, _MAPPED_PREFIX + packed) if len(packed) == _IPV4_BYTES else (packed,):
        # Groups of four bytes, each in the byte order of the machine, little-endian.
        groups = (form[i : i + 4][::-1] for i in range(0, len(form), 4))
        yield b"".join(groups).hex().upper().encode()


def _argv(process: bytes) -> Sequence[bytes]:
    # The text after the last NUL is truncated and may be a prefix of another name.
    return process[:MAX_CMDLINE_CHARS].split(b"\0", _MAX_WORDS)[:-1]


def _targets(words: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the host names that a program connects to; a script follows its interpreter."""
    for position, word in enumerate(words[:2]):
        rest = words[position + 1 :]
        program = word.rpartition(b"/")[2]
        if program == b"kubexec.sh":
            yield from rest[:1]
        elif program == b"kubectl" and b"exec" in rest:
            before = rest[: rest.index(b"--")] if b"--" in rest else rest
            yield from (each.removeprefix(b"pod/").removeprefix(b"pods/") for each in before)
        elif program == b"ssh":
            yield from _ssh_host(rest)


def _ssh_host(words: Sequence[bytes]) -> Iterator[bytes]:
    remaining = iter(words)
    for word in remaining:
        if not word.startswith(b"-"):
            yield word.rpartition(b"@")[2]
            return
        if len(word) == 2 and word[1:] in _SSH_OPTIONS_WITH_VALUE:
            next(remaining, None)

"""Decodes the output of commands in a launcher: reachable workers, and workers in use. Pure."""

import enum
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.errors import DlctlError

SSH_PORT: Final = 22
# SYN_SENT, ESTABLISHED and SYN_RECV as the kernel numbers them.
_OPEN_STATES: Final = frozenset({"01", "02", "03"})
_PROCESS_HEADER: Final = re.compile(rb"(?:\A|\n)==> /proc/\d+/cmdline <==\n")
_SSH_OPTIONS_WITH_VALUE: Final = frozenset("BbcDEeFIiJLlmOopQRSWw")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class InspectionError(DlctlError):
    """The launcher's image lacks the programs to inspect it."""


class ProbeMethod(enum.StrEnum):
    """How the launcher probed the workers; with ``nothing``, all of them count as reachable."""

    SSH = "ssh"
    NAMES = "names"
    NONE = "nothing"


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
    for line in output.decode(errors="replace").split("\n"):
        result, _, rest = line.strip().partition(" ")
        worker, _, reason = rest.partition(" ")
        if result == "by":
            method = ProbeMethod(rest)
        elif result == "ok" and worker in reasons:
            reachable.add(worker)
            del reasons[worker]
        elif result == "no" and worker in reasons:
            reasons[worker] = reason or "it did not respond in time"
    return ProbeResult(frozenset(reachable), reasons, method)


def parse_workers_in_use(
    output: bytes, workers: Mapping[str, str], *, port: int = SSH_PORT
) -> frozenset[str]:
    """Return which of the workers (addresses by name) the launcher uses.

    It uses a worker if it is connected or connecting to the worker's sshd, or runs a program whose
    target is the worker's name. A worker without an address is matched by name only.
    """
    sockets, *processes = _PROCESS_HEADER.split(output)
    if b"rem_address" not in sockets or not processes:
        raise InspectionError("the launcher's image cannot list its connections")
    peers = set(_peers(sockets.decode(), port))
    named = {name for process in processes for name in _targets(_argv(process))}
    return frozenset(
        worker
        for worker, address in workers.items()
        if worker in named or (address and _unmapped(ipaddress.ip_address(address)) in peers)
    )


def _peers(table: str, port: int) -> Iterator[Address]:
    """Yield the peers of the connections to the port in ``/proc/net/tcp`` and ``tcp6``."""
    for row in table.splitlines():
        columns = row.split()
        if len(columns) > 3 and columns[3] in _OPEN_STATES:
            address, _, peer_port = columns[2].partition(":")
            if int(peer_port, 16) == port:
                yield _parse_address(address)


def _parse_address(digits: str) -> Address:
    # Groups of four bytes, each in the byte order of the machine, little-endian.
    groups = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    return _unmapped(ipaddress.ip_address(b"".join(groups)))


def _unmapped(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address, else the address itself."""
    return getattr(address, "ipv4_mapped", None) or address


def _argv(process: bytes) -> Sequence[str]:
    # The text after the last NUL is truncated and may be a prefix of another name.
    return [word.decode(errors="replace") for word in process.split(b"\0")[:-1]]


def _targets(words: Sequence[str]) -> Iterator[str]:
    """Yield the host names that a program connects to; a script follows its interpreter."""
    for position, word in enumerate(words[:2]):
        rest = words[position + 1 :]
        program = word.rpartition("/")[2]
        if program == "kubexec.sh":
            yield from rest[:1]
        elif program == "kubectl" and "exec" in rest:
            before = rest[: rest.index("--")] if "--" in rest else rest
            yield from (each.removeprefix("pod/").removeprefix("pods/") for each in before)
        elif program == "ssh":
            yield from _ssh_host(rest)


def _ssh_host(words: Sequence[str]) -> Iterator[str]:
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            yield word.rpartition("@")[2]
            return
        if len(word) == 2 and word[1] in _SSH_OPTIONS_WITH_VALUE:
            next(remaining, None)

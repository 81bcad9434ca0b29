"""What the output of commands in a launcher means: who answers, and who is still in use. Pure."""

import enum
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.errors import DlctlError

SSH_PORT: Final = 22
# SYN_SENT, ESTABLISHED and SYN_RECV as the kernel numbers them.
_OPEN: Final = frozenset({"01", "02", "03"})
_PROCESS: Final = re.compile(rb"(?:\A|\n)==> /proc/\d+/cmdline <==\n")
_SSH_OPTIONS_WITH_VALUE: Final = frozenset("BbcDEeFIiJLlmOopQRSWw")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class UnreadableError(DlctlError):
    """The launcher's image lacks what is needed to look into it."""


class ProbedBy(enum.StrEnum):
    """How it was found out that workers answer; by nothing, they were all taken to."""

    SSH = "ssh"
    NAMES = "names"
    NOTHING = "nothing"


@attrs.frozen
class Reach:
    """Which workers answer, seen from the launcher, and what is known of why others do not."""

    answering: frozenset[str]
    reasons: Mapping[str, str] = attrs.field(factory=dict)
    by: ProbedBy = ProbedBy.SSH


def reach(output: bytes, workers: Collection[str]) -> Reach:
    """Read what a probe has said; a worker of which it says nothing does not answer."""
    answering: set[str] = set()
    reasons = dict.fromkeys(workers, "it was not looked for")
    by = ProbedBy.SSH
    for line in output.decode(errors="replace").split("\n"):
        verdict, _, rest = line.strip().partition(" ")
        worker, _, reason = rest.partition(" ")
        if verdict == "by":
            by = ProbedBy(rest)
        elif verdict == "ok" and worker in reasons:
            answering.add(worker)
            del reasons[worker]
        elif verdict == "no" and worker in reasons:
            reasons[worker] = reason or "it did not answer in time"
    return Reach(frozenset(answering), reasons, by)


def users(output: bytes, workers: Mapping[str, str], *, port: int = SSH_PORT) -> frozenset[str]:
    """Return which of the workers, addresses by name, the launcher has to do with.

    It has if it is connected to one's sshd, or on the way, or runs a program that is to reach it
    by its name. A worker without an address may be known by its name alone.
    """
    sockets, *processes = _PROCESS.split(output)
    if b"rem_address" not in sockets or not processes:
        raise UnreadableError("the launcher does not tell what it is connected to")
    peers = set(_peers(sockets.decode(), port))
    named = {name for process in processes for name in _reached(_words(process))}
    return frozenset(
        worker
        for worker, address in workers.items()
        if worker in named or (address and _plain(ipaddress.ip_address(address)) in peers)
    )


def _peers(table: str, port: int) -> Iterator[Address]:
    """Yield whom the rows of ``/proc/net/tcp`` and ``tcp6`` are connected to at the port."""
    for row in table.splitlines():
        columns = row.split()
        if len(columns) > 3 and columns[3] in _OPEN:
            address, _, peer_port = columns[2].partition(":")
            if int(peer_port, 16) == port:
                yield _address(address)


def _address(digits: str) -> Address:
    # Words of four bytes, each written as a number of the machine, which are little-endian.
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    return _plain(ipaddress.ip_address(b"".join(words)))


def _plain(address: Address) -> Address:
    """Return an IPv4 address as such, also where it stands in an IPv6 one."""
    return getattr(address, "ipv4_mapped", None) or address


def _words(process: bytes) -> Sequence[str]:
    # What follows the last NUL was cut off, and may be the beginning of another name.
    return [word.decode(errors="replace") for word in process.split(b"\0")[:-1]]


def _reached(words: Sequence[str]) -> Iterator[str]:
    """Yield whom the program is to reach by name; before a script there is its interpreter."""
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

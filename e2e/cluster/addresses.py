"""The addresses of a cluster. They are always the same, so a network has room for one cluster."""

import random
import socket
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from e2e.cluster.errors import ClusterError

# On the bridge: the cluster's name server, the gateway of all pods, and the first real node.
GATEWAY: Final = "10.244.0.1"
PODS: Final = "10.244.0.0/16"
SERVICES: Final = "10.96.0.0/16"
# The API server as pods see it.
SERVICE: Final = "10.96.0.1"
# Below those of NodePorts and of outgoing connections, which would take a program's port while it
# is restarted.
_PORTS: Final = range(10_000, 30_000)


def node_address(number: int) -> str:
    """Return the address of a real node; the first is number 1."""
    return f"10.244.0.{number}"


def pod_addresses(number: int) -> tuple[str, str]:
    """Return the first and the last pod address of a real node."""
    return f"10.244.{number}.1", f"10.244.{number}.254"


def free_port() -> int:
    """Return a port that is currently free, and that no outgoing connection gets by chance."""
    return free_ports(1)[0]


def free_ports(count: int, candidates: Sequence[int] = _PORTS) -> list[int]:
    """Return as many different ports of that kind, which are some of the candidates."""
    # Tests seed the generator that all share, and two of them at once would draw the same.
    drawn = random.Random().sample(candidates, len(candidates))
    found = list(islice(filter(_is_free, drawn), count))
    if len(found) < count:
        first, last = min(candidates), max(candidates)
        raise ClusterError(f"fewer than {count} ports are free from {first} to {last}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as sock, suppress(OSError):
        sock.bind(("127.0.0.1", port))
        return True
    return False

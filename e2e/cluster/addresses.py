"""The addresses of a cluster. They are the same for each, so a network has room for one."""

import socket
from typing import Final

# Of the bridge: the cluster's name server, the gateway of all pods, and the first real node.
GATEWAY: Final = "10.244.0.1"
PODS: Final = "10.244.0.0/16"
SERVICES: Final = "10.96.0.0/16"
# Of the API server, as pods see it.
SERVICE: Final = "10.96.0.1"


def node_address(number: int) -> str:
    """Return the address of a real node; the first is number 1."""
    return f"10.244.0.{number}"


def pod_addresses(number: int) -> tuple[str, str]:
    """Return the first and the last address that a real node may give to its pods."""
    return f"10.244.{number}.1", f"10.244.{number}.254"


def free_port() -> int:
    """Return a port that nobody listens on, for now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port

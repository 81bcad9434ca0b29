"""The addresses of a cluster. They are the same for each, so one machine holds one real node."""

import socket
from typing import Final

# On the bridge: the node's own address, the cluster's name server and the gateway of all pods.
NODE: Final = "10.244.0.1"
PODS: Final = "10.244.0.0/16"
FIRST_POD: Final = "10.244.1.1"
SERVICES: Final = "10.96.0.0/16"
# Of the API server, as pods see it.
SERVICE: Final = "10.96.0.1"


def free_port() -> int:
    """Return a port that nobody listens on, for now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port

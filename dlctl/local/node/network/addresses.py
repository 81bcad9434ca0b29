"""IP addresses of pods in isolated networks.

The range exists only inside the agent's namespaces, so it cannot collide with the machine's.
"""

import ipaddress
from collections import deque
from typing import Final

from dlctl.errors import DlctlError

NODE_IP: Final = "10.244.0.1"
LOOPBACK_IP: Final = "127.0.0.1"
PREFIX_LENGTH: Final = 16
# The networks of pods, of services and of each pod's loopback: other connections go outside.
CLUSTER_NETWORKS: Final = ("10.244.0.0/16", "10.96.0.0/16", "127.0.0.0/8")
DNS_PORT: Final = 53


class NoAddressError(DlctlError):
    """All addresses are in use."""


class AddressPool:
    """Allocates each address once until it is released; the longest unused one goes first."""

    def __init__(self) -> None:
        network = ipaddress.ip_interface(f"{NODE_IP}/{PREFIX_LENGTH}").network
        self._fresh = (str(ip) for ip in network.hosts() if str(ip) != NODE_IP)
        self._returned: deque[str] = deque()

    def allocate(self) -> str:
        """Return a free address.

        :raises NoAddressError: if there is none.
        """
        ip = next(self._fresh, None)
        if ip is not None:
            return ip
        if not self._returned:
            raise NoAddressError("no free pod IP; delete some pods")
        return self._returned.popleft()

    def release(self, ip: str) -> None:
        self._returned.append(ip)

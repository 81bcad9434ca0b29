"""The network of a node: a bridge, and for each pod a network namespace with a veth pair.

Lives in the agent's own network namespace, so the machine's network is not touched and everything
vanishes with the agent. Sockets that dlctl serves lead to the API server and to the outside.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import attrs
from pyroute2 import IPRoute, NetlinkError

from dlctl.local.node import linux
from dlctl.local.node.api_access import IN_CLUSTER_IP, IN_CLUSTER_PORT
from dlctl.local.node.network.addresses import NODE_IP, PREFIX_LENGTH

_BRIDGE = "dlctl0"
# A locally administered address.
_HARDWARE_ADDRESS = "02:0a:f4:00:00:01"


@attrs.define
class _Veth:
    netns_fd: int
    name: str


class Bridge:
    """The pods' network; every pod reaches every other, and the node, by IP."""

    def __init__(self) -> None:
        self._host_netns_fd = _current_netns()
        self._veths: dict[str, _Veth] = {}
        self._count = 0
        self._ip = IPRoute()
        try:
            # Otherwise the bridge takes the address of one of its ports, and another one when that
            # port goes, while pods have the old one in their ARP caches.
            self._ip.link("add", ifname=_BRIDGE, kind="bridge", address=_HARDWARE_ADDRESS)
        except NetlinkError as error:
            raise OSError(error.code, f"network bridge: {error}") from error
        self._index = self._ip.link_lookup(ifname=_BRIDGE)[0]
        self._ip.addr("add", index=self._index, address=NODE_IP, prefixlen=PREFIX_LENGTH)
        self._ip.addr("add", index=self._index, address=IN_CLUSTER_IP, prefixlen=32)
        self._ip.link("set", index=self._index, state="up")
        self._ip.link("set", index=self._ip.link_lookup(ifname="lo")[0], state="up")
        # For pods in this namespace; what takes it is redirected, and never sent.
        self._ip.route("add", dst="0.0.0.0/0", oif=self._index)

    def api_listener(self) -> socket.socket:
        """Return a listening socket where pods look for the API server, for its proxy."""
        return socket.create_server((IN_CLUSTER_IP, IN_CLUSTER_PORT))

    def netns_fd(self, pod: str) -> int | None:
        """Return the pod's network namespace; None stands for the node's."""
        veth = self._veths.get(pod)
        return veth.netns_fd if veth else None

    def open_socket(self, pod: str) -> socket.socket:
        """Return an unconnected TCP socket in the network of the pod."""
        if (netns_fd := self.netns_fd(pod)) is None:
            return socket.socket()
        linux.setns(netns_fd, linux.CLONE_NEWNET)
        try:
            return socket.socket()
        finally:
            linux.setns(self._host_netns_fd, linux.CLONE_NEWNET)

    def attach(self, pod: str, ip: str) -> None:
        """Give the pod a namespace with the IP.

        :raises OSError: if the kernel refuses.
        """
        try:
            self._attach(pod, ip)
        except NetlinkError as error:
            raise OSError(error.code, f"network of the pod: {error}") from error

    def _attach(self, pod: str, ip: str) -> None:
        self._count += 1
        name = f"pod{self._count}"
        with self._new_netns() as (netns_fd, inside):
            self._ip.link(
                "add",
                ifname=name,
                kind="veth",
                peer={"ifname": "eth0", "net_ns_fd": netns_fd},
            )
            outer = self._ip.link_lookup(ifname=name)[0]
            self._ip.link("set", index=outer, master=self._index, state="up")
            inside.link("set", index=inside.link_lookup(ifname="lo")[0], state="up")
            inner = inside.link_lookup(ifname="eth0")[0]
            inside.addr("add", index=inner, address=ip, prefixlen=PREFIX_LENGTH)
            inside.link("set", index=inner, state="up")
            # Programs also use it to find their own address.
            inside.route("add", gateway=NODE_IP)
        self._veths[pod] = _Veth(netns_fd=netns_fd, name=name)

    def detach(self, pod: str) -> None:
        """Close the pod's namespace and delete its veth pair; idempotent.

        :raises OSError: if the pair cannot be deleted.
        """
        if (veth := self._veths.pop(pod, None)) is None:
            return
        # Closed last: without a reference to the namespace, the kernel deletes the veth pair some
        # time later.
        try:
            if found := self._ip.link_lookup(ifname=veth.name):
                self._ip.link("del", index=found[0])
        except NetlinkError as error:
            raise OSError(error.code, f"network of the pod: {error}") from error
        finally:
            os.close(veth.netns_fd)

    @contextmanager
    def _new_netns(self) -> Iterator[tuple[int, IPRoute]]:
        """Create a network namespace; it is gone if the block fails, and the veth pair with it."""
        linux.unshare(linux.CLONE_NEWNET)
        with ExitStack() as on_failure:
            try:
                netns_fd = _current_netns()
                on_failure.callback(os.close, netns_fd)
                # A netlink socket stays in the namespace in which it was opened.
                inside = IPRoute()
            finally:
                linux.setns(self._host_netns_fd, linux.CLONE_NEWNET)
            with closing(inside):
                yield netns_fd, inside
            on_failure.pop_all()


def _current_netns() -> int:
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

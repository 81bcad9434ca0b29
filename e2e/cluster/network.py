"""What real nodes share: a bridge of this machine, the name server and the service proxy.

Needs root, iproute2, iptables, conntrack and the standard CNI plugins under /usr/lib/cni.
"""

import shutil
import subprocess
from typing import Final

from e2e.cluster import node_config
from e2e.cluster.addresses import GATEWAY, PODS, free_ports, node_address
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.errors import ClusterError

_PROGRAMS: Final = {
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}


def create_bridge(nodes: int) -> None:
    """Create the bridge before anything binds to its addresses."""
    missing = [package for name, package in _PROGRAMS.items() if shutil.which(name) is None]
    if missing:
        raise ClusterError(f"a real node needs {', '.join(missing)}: apt-get install them")
    steps = [
        "ip link set lo up",
        f"ip link add {node_config.BRIDGE} type bridge",
        *(f"ip addr add {node_address(n + 1)}/16 dev {node_config.BRIDGE}" for n in range(nodes)),
        f"ip link set {node_config.BRIDGE} up",
        "sysctl -w net.ipv4.ip_forward=1",
    ]
    for step in steps:
        # Each may already be done.
        subprocess.run(step.split(), capture_output=True, check=False)


def start_services(plane: ControlPlane) -> None:
    """Start the name server and the service proxy."""
    names = plane.directory / "Corefile"
    names.write_text(node_config.name_server(plane.kubeconfig))
    health, metrics = free_ports(2)
    plane.processes.start("coredns", "-conf", str(names))
    plane.processes.start(
        "kube-proxy",
        f"--kubeconfig={plane.kubeconfig}",
        "--hostname-override=node-1",
        "--proxy-mode=iptables",
        # Leave the limit of the machine as it is: /proc/sys may be read-only.
        "--conntrack-max-per-core=0",
        f"--cluster-cidr={PODS}",
        f"--bind-address={GATEWAY}",
        f"--healthz-bind-address=127.0.0.1:{health}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
    )

"""One real node: containerd, kubelet, name server and service proxy, on a bridge of this machine.

Needs root, iproute2, iptables, conntrack and the standard CNI plugins under /usr/lib/cni.
"""

import subprocess
import time
from pathlib import Path
from typing import Final

import attrs

from e2e.cluster import nodeconfig
from e2e.cluster.addresses import NODE, PODS, free_port
from e2e.cluster.controlplane import ControlPlane
from e2e.cluster.errors import ClusterError

NAME: Final = "node-1"
_SOCKET_S: Final = 30.0
_POLL_S: Final = 0.1
_NODE_PROGRAMS: Final = ("kubelet", "kube-proxy", "coredns")


@attrs.frozen
class Node:
    """The node of a control plane; its files lie in the folder ``node`` of the cluster."""

    plane: ControlPlane

    @property
    def directory(self) -> Path:
        return self.plane.directory / "node"

    @property
    def socket(self) -> Path:
        return self.directory / "containerd.sock"

    def up(self) -> None:
        """Start it; it registers itself and is ready some seconds later."""
        (self.directory / "cni").mkdir(parents=True, exist_ok=True)
        _raise_bridge()
        self._start_containerd()
        self._start_kubelet()
        self._start_network()

    def _start_containerd(self) -> None:
        settings = self.directory / "containerd.toml"
        settings.write_text(nodeconfig.containerd(self.directory, self.socket))
        network = self.directory / "cni" / "10-bridge.conflist"
        network.write_text(nodeconfig.network(self.directory))
        self.plane.processes.start("containerd", "-c", str(settings))
        deadline = time.monotonic() + _SOCKET_S
        while not self.socket.exists():
            if time.monotonic() > deadline:
                log = self.plane.directory / "containerd.log"
                raise ClusterError(f"containerd does not listen: see {log}")
            time.sleep(_POLL_S)

    def _start_kubelet(self) -> None:
        settings = self.directory / "kubelet.json"
        settings.write_text(nodeconfig.kubelet(self.directory, self.socket))
        self.plane.processes.start(
            "kubelet",
            f"--config={settings}",
            f"--kubeconfig={self.plane.kubeconfig}",
            f"--root-dir={self.directory}/kubelet",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE}",
            f"--cert-dir={self.directory}/pki",
        )

    def _start_network(self) -> None:
        names = self.directory / "Corefile"
        names.write_text(nodeconfig.name_server(self.plane.kubeconfig))
        self.plane.processes.start("coredns", "-conf", str(names))
        self.plane.processes.start(
            "kube-proxy",
            f"--kubeconfig={self.plane.kubeconfig}",
            f"--hostname-override={NAME}",
            "--proxy-mode=iptables",
            # Leave the limit of the machine as it is: /proc/sys may be read-only.
            "--conntrack-max-per-core=0",
            f"--cluster-cidr={PODS}",
            f"--bind-address={NODE}",
            f"--healthz-bind-address=127.0.0.1:{free_port()}",
            f"--metrics-bind-address=127.0.0.1:{free_port()}",
        )

    def load(self, archive: Path) -> None:
        """Import the images of an OCI archive."""
        self._ctr("images", "import", str(archive))

    def down(self) -> None:
        """End the node and all containers; containerd itself ends with the control plane."""
        processes = self.plane.processes
        # Before the containers, or it starts them again.
        processes.kill("kubelet")
        if "containerd" in processes.running():
            for container in self._ctr("tasks", "ls", "-q").split():
                self._ctr("tasks", "kill", "-s", "SIGKILL", container, check=False)
        processes.stop(_NODE_PROGRAMS)

    def _ctr(self, *args: str, check: bool = True) -> str:
        program = str(self.plane.programs / "ctr")
        command = [program, "-a", str(self.socket), "-n", "k8s.io", *args]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and run.returncode:
            raise ClusterError(f"ctr {' '.join(args)}: {run.stderr.strip()}")
        return run.stdout


def _raise_bridge() -> None:
    """Have the bridge ready before anything binds to its address; it may be there already."""
    steps = (
        f"ip link add {nodeconfig.BRIDGE} type bridge",
        f"ip addr add {NODE}/16 dev {nodeconfig.BRIDGE}",
        f"ip link set {nodeconfig.BRIDGE} up",
        "sysctl -w net.ipv4.ip_forward=1",
    )
    for step in steps:
        subprocess.run(step.split(), capture_output=True, check=False)

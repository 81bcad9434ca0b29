"""One real node: containerd and a kubelet, with control groups and pod addresses of its own.

Needs root, and the network of the cluster to be up.
"""

import os
import signal
import socket
import subprocess
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from e2e.cluster import cgroups, node_config
from e2e.cluster.addresses import node_address
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.errors import ClusterError
from e2e.cluster.image import write_archive

_SOCKET_S: Final = 30.0
# It connects to containerd right after its start.
_KUBELET_SETTLED_S: Final = 2.0
_POLL_S: Final = 0.1


@attrs.frozen
class Node:
    """A node of a control plane, by its number from 1; its files lie in a folder of its name."""

    plane: ControlPlane
    number: int

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def directory(self) -> Path:
        return self.plane.directory / self.name

    @property
    def socket(self) -> Path:
        return self.directory / "containerd.sock"

    @property
    def cgroup(self) -> str:
        return f"/{self.plane.directory.name}-{self.name}"

    @property
    def kubelet(self) -> str:
        """Return the name of the kubelet's process."""
        return f"kubelet-{self.number}"

    @property
    def containerd(self) -> str:
        """Return the name of containerd's process."""
        return f"containerd-{self.number}"

    def up(self) -> None:
        """Start it; it registers itself and becomes ready some seconds later."""
        (self.directory / "cni").mkdir(parents=True, exist_ok=True)
        cgroups.make(self.cgroup)
        self._start_containerd()
        self._load_pause()
        self._start_kubelet()

    def _start_containerd(self) -> None:
        settings = self.directory / "containerd.toml"
        settings.write_text(node_config.containerd(self.directory, self.socket))
        network = self.directory / "cni" / "10-bridge.conflist"
        network.write_text(node_config.network(self.directory, self.number))
        self.plane.processes.start("containerd", "-c", str(settings), name=self.containerd)
        self._wait_for_containerd()

    def _wait_for_containerd(self) -> None:
        deadline = time.monotonic() + _SOCKET_S
        while not self._listens():
            if time.monotonic() > deadline:
                log = self.plane.directory / f"{self.containerd}.log"
                raise ClusterError(f"containerd does not listen: see {log}")
            time.sleep(_POLL_S)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.socket)) == 0

    def _load_pause(self) -> None:
        root, archive = self.directory / "pause-root.tar", self.directory / "pause.tar"
        with tarfile.open(root, "w") as tar:
            tar.add(self.plane.programs / "pause", "pause")
        write_archive(archive, node_config.PAUSE, root, ["/pause"])
        self.load(archive)

    def _start_kubelet(self) -> None:
        settings = self.directory / "kubelet.json"
        settings.write_text(
            node_config.kubelet(self.directory, self.socket, self.number, self.cgroup)
        )
        self.plane.processes.start(
            "kubelet",
            f"--config={settings}",
            f"--kubeconfig={self.plane.kubeconfig}",
            f"--root-dir={self.directory}/kubelet",
            f"--hostname-override={self.name}",
            f"--node-ip={node_address(self.number)}",
            f"--cert-dir={self.directory}/pki",
            name=self.kubelet,
        )

    def load(self, archive: Path) -> None:
        """Import the images of an OCI archive."""
        self._ctr("images", "import", str(archive))

    def power_off(self) -> None:
        """Kill everything at once, like a power failure."""
        self.plane.processes.kill(self.kubelet)
        self.plane.processes.kill(self.containerd)
        for pid in cgroups.processes(self.cgroup):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def power_on(self) -> None:
        """Start a powered-off node; the kubelet then restarts its containers."""
        self.plane.processes.restart(self.containerd)
        self._wait_for_containerd()
        self._restart_kubelet()

    def _restart_kubelet(self) -> None:
        """Restart it until it stays, as systemd would.

        It ends if containerd listens, but has not initialized its runtime interface yet.
        """
        deadline = time.monotonic() + _SOCKET_S
        while time.monotonic() < deadline:
            self.plane.processes.restart(self.kubelet)
            settled = time.monotonic() + _KUBELET_SETTLED_S
            while self.kubelet in self.plane.processes.running():
                if time.monotonic() > settled:
                    return
                time.sleep(_POLL_S)
        log = self.plane.directory / f"{self.kubelet}.log"
        raise ClusterError(f"the kubelet does not stay: see {log}")

    def down(self) -> None:
        """End all containers and the node."""
        processes = self.plane.processes
        # Before the containers: it would restart them.
        processes.kill(self.kubelet)
        if self.containerd in processes.running():
            for container in self._ctr("tasks", "ls", "-q").split():
                # The shim ends with the container.
                self._ctr("tasks", "delete", "--force", container, check=False)
        processes.stop([self.containerd])
        cgroups.remove(self.cgroup)

    def _ctr(self, *args: str, check: bool = True) -> str:
        program = str(self.plane.programs / "ctr")
        command = [program, "-a", str(self.socket), "-n", "k8s.io", *args]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and run.returncode:
            raise ClusterError(f"ctr {' '.join(args)}: {run.stderr.strip()}")
        return run.stdout

"""Faults that only the owner of a cluster can cause: killed processes, partitions, compaction.

On a foreign cluster these tests are skipped.
"""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from dlctl.api.json_types import JSON
from e2e.cluster import cgroups
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.node import Node
from e2e.cluster.processes import Processes


@attrs.frozen
class ClusterTestbed:
    """A cluster of plain processes on this machine, by its folder."""

    directory: Path
    programs: Path

    @property
    def processes(self) -> Processes:
        return self._control_plane.processes

    @property
    def _control_plane(self) -> ControlPlane:
        return ControlPlane(self.directory, self.programs)

    def kill_pod(self, uid: str) -> None:
        """Kill all processes of a pod at once, like ``kill -9`` on its node."""
        for pid in cgroups.processes(uid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def partitioned(self, *addresses: str) -> Iterator[None]:
        """Drop all packets between pods and the API server silently."""
        port = self._api_port()
        rules = [
            rule
            for address in addresses
            for rule in (
                ("INPUT", "--source", address, "--destination-port", port),
                ("OUTPUT", "--destination", address, "--source-port", port),
            )
        ]
        try:
            for chain, *match in rules:
                _iptables("--insert", chain, "--protocol", "tcp", *match, "--jump", "DROP")
            yield
        finally:
            for chain, *match in rules:
                _iptables("--delete", chain, "--protocol", "tcp", *match, "--jump", "DROP")

    @contextmanager
    def powered_off(self, name: str) -> Iterator[None]:
        """Power a node off for the duration of the block, then start it again."""
        node = Node(self._control_plane, int(name.rpartition("-")[2]))
        node.power_off()
        try:
            yield
        finally:
            node.power_on()

    def compact(self) -> int:
        """Compact etcd to its current revision, and return that."""
        revision = int(self._etcd("range", {"key": "AA=="})["header"]["revision"])
        self._etcd("compaction", {"revision": revision, "physical": True})
        return revision

    @contextmanager
    def without_feature(self, feature: str) -> Iterator[None]:
        """Run the API server without a feature, like older versions; it restarts twice."""
        try:
            self.processes.kill("kube-apiserver")
            self.processes.restart("kube-apiserver", f"--feature-gates={feature}=false")
            yield
        finally:
            self.processes.kill("kube-apiserver")
            self.processes.restart("kube-apiserver")

    def revive_api_server(self) -> None:
        """Start the API server again if a failed test has left it dead."""
        if "kube-apiserver" not in self.processes.running():
            self.processes.restart("kube-apiserver")

    def audit(self, about: str = "") -> Iterator[JSON]:
        """Yield the audit log of the API server, or its entries that contain a text."""
        with (self.directory / "audit.log").open() as log:
            yield from (json.loads(line) for line in log if about in line)

    def _api_port(self) -> str:
        config = json.loads(self._control_plane.kubeconfig.read_text())
        server: str = config["clusters"][0]["cluster"]["server"]
        return server.rpartition(":")[2]

    def _etcd(self, method: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        url = self._control_plane.etcd_url.read_text()
        request = urllib.request.Request(f"{url}/v3/kv/{method}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, dict[str, str]] = json.load(answer)
            return found


def _iptables(*args: str) -> None:
    subprocess.run(["iptables", "--wait", *args], check=True, capture_output=True)

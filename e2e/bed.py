"""What only who owns a cluster can do to it: kill its processes, cut its network, compact etcd.

For tests of faults; a cluster that is somebody else's has none, and those tests are skipped.
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

from e2e.cluster.controlplane import ControlPlane
from e2e.cluster.processes import Processes
from e2e.kubectl import JSON


@attrs.frozen
class Bed:
    """A cluster of plain processes on this machine, by its folder."""

    directory: Path
    programs: Path

    @property
    def processes(self) -> Processes:
        return ControlPlane(self.directory, self.programs).processes

    def kill_pod(self, uid: str) -> None:
        """End all processes of a pod at once, as ``kill -9`` on its node does."""
        for pid in _processes_of(uid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def cut_off(self, *addresses: str) -> Iterator[None]:
        """Drop what pods say to this machine and what it says to them; nobody is told."""
        rules = [
            rule
            for address in addresses
            for rule in (("INPUT", "-s", address), ("OUTPUT", "-d", address))
        ]
        try:
            for chain, *match in rules:
                _iptables("--insert", chain, *match, "--jump", "DROP")
            yield
        finally:
            for chain, *match in rules:
                _iptables("--delete", chain, *match, "--jump", "DROP")

    def compact(self) -> int:
        """Have etcd forget all but the present; return the revision of that."""
        revision = int(self._etcd("range", {"key": "AA=="})["header"]["revision"])
        self._etcd("compaction", {"revision": revision, "physical": True})
        return revision

    @contextmanager
    def without(self, feature: str) -> Iterator[None]:
        """Have the API server lack a feature, as older ones do; it is away before and after."""
        try:
            self.processes.kill("kube-apiserver")
            self.processes.restart("kube-apiserver", f"--feature-gates={feature}=false")
            yield
        finally:
            self.processes.kill("kube-apiserver")
            self.processes.restart("kube-apiserver")

    def audit(self) -> Iterator[JSON]:
        """Yield all requests that the API server has answered."""
        with (self.directory / "audit.log").open() as log:
            yield from (json.loads(line) for line in log)

    def _etcd(self, method: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        url = ControlPlane(self.directory, self.programs).etcd_url.read_text()
        request = urllib.request.Request(f"{url}/v3/kv/{method}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, dict[str, str]] = json.load(answer)
            return found


def _processes_of(uid: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):
            # With another driver than ours, dashes are underscores.
            if uid in path.read_text().replace("_", "-"):
                yield int(path.parent.name)


def _iptables(*args: str) -> None:
    subprocess.run(["iptables", "--wait", *args], check=True, capture_output=True)

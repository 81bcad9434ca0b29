"""The control plane: etcd, API server, controller manager, scheduler; and simulated nodes.

It is up when the API server says so; controllers and scheduler then need a moment more.
"""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import attrs

from e2e.cluster.addresses import GATEWAY, SERVICES, free_port, free_ports
from e2e.cluster.errors import ClusterError
from e2e.cluster.identity import Identity
from e2e.cluster.processes import Processes

_READY_S: Final = 90.0
_POLL_S: Final = 0.1
# How long a real node may be silent.
NODE_LOST_S: Final = 10
_AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
_KWOK_ANNOTATION: Final = "kwok.x-k8s.io/node"


@attrs.frozen
class ControlPlane:
    """A cluster in its own folder; :meth:`down` ends all of its processes."""

    directory: Path
    programs: Path

    @property
    def processes(self) -> Processes:
        return Processes(self.directory, self.programs)

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "admin.kubeconfig"

    @property
    def etcd_url(self) -> Path:
        """Return the file with etcd's address, for tests that compact it."""
        return self.directory / "etcd.url"

    def up(self, *, for_nodes: bool = False, audit: bool = False) -> None:
        """Start it; with ``for_nodes``, pods and kubelets can reach the API server, too."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.processes.running():
            raise ClusterError(f"a cluster is running in {self.directory} already")
        identity = Identity(self.directory)
        token = identity.write()
        port = free_port()
        self._start_etcd()
        self._start_api_server(identity, port, for_nodes=for_nodes, audit=audit)
        server = f"https://127.0.0.1:{port}"
        identity.write_kubeconfig(self.kubeconfig, server, token)
        self._wait(server, token, identity.authority)
        self._start_controllers(identity, for_nodes=for_nodes)

    def down(self) -> None:
        self.processes.stop()

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.etcd_url.write_text(client)
        self.processes.start(
            "etcd",
            f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # The cluster does not survive the machine, so it need not sync its disk.
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
        )

    def _start_api_server(
        self, identity: Identity, port: int, *, for_nodes: bool, audit: bool
    ) -> None:
        args = [
            f"--etcd-servers={self.etcd_url.read_text()}",
            f"--secure-port={port}",
            f"--cert-dir={self.directory}/apiserver",
            f"--tls-cert-file={identity.certificate}",
            f"--tls-private-key-file={identity.key}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--service-account-key-file={identity.accounts_key}",
            f"--service-account-signing-key-file={identity.accounts_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={identity.tokens}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            # The strictest admission: creating a child that blocks its owner's deletion
            # requires the right to set the owner's finalizers.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        ]
        if for_nodes:
            args += ["--bind-address=0.0.0.0", f"--advertise-address={GATEWAY}"]
            args += ["--kubelet-preferred-address-types=InternalIP"]
        else:
            args += ["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"]
            # An Endpoints object must not contain a loopback address.
            args += ["--endpoint-reconciler-type=none"]
        if audit:
            policy = self.directory / "audit.json"
            policy.write_text(json.dumps(_AUDIT_POLICY))
            args += [f"--audit-policy-file={policy}"]
            # All in one file.
            args += [f"--audit-log-path={self.directory}/audit.log", "--audit-log-maxsize=100000"]
        self.processes.start("kube-apiserver", *args)

    def _start_controllers(self, identity: Identity, *, for_nodes: bool) -> None:
        # Detect lost nodes early; real nodes report as often. Those that tests play report from
        # busy processes, and once lost stay so.
        early = [f"--node-monitor-grace-period={NODE_LOST_S}s"]
        self.processes.start(
            "kube-controller-manager",
            *self._controller("kcm"),
            f"--service-account-private-key-file={identity.accounts_key}",
            f"--root-ca-file={identity.authority}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--node-monitor-period=1s",
            *(early if for_nodes else ()),
        )
        self.processes.start(
            "kube-scheduler",
            *self._controller("scheduler"),
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        )

    def _controller(self, certificates: str) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.directory}/{certificates}",
        ]

    def _wait(self, server: str, token: str, authority: Path) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{server}/readyz", headers=headers)
        context = ssl.create_default_context(cafile=str(authority))
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(request, context=context, timeout=2):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if "kube-apiserver" not in self.processes.running():
                    break
                time.sleep(_POLL_S)
        log = (self.directory / "kube-apiserver.log").read_text(errors="replace")
        last = "\n".join(log.splitlines()[-20:])
        raise ClusterError(f"the API server is not ready; the last that it said:\n{last}")

    def add_kwok_nodes(self, count: int, *, apart: bool) -> None:
        """Register simulated nodes, on which pods become Running without processes.

        Those ``apart`` take only pods that tolerate their taint, so that others really run.
        """
        nodes = [_kwok_node(f"kwok-{index}", apart=apart) for index in range(count)]
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})
        self.kubectl("apply", "-f", "-", stdin=document)
        self.processes.start(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={_KWOK_ANNOTATION}=fake",
            # Their leases are renewed often enough not to count as lost.
            f"--node-lease-duration-seconds={2 * NODE_LOST_S}",
        )

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *args]
        run = subprocess.run(command, input=stdin, text=True, capture_output=True, check=False)
        if run.returncode:
            raise ClusterError(f"kubectl {' '.join(args)}: {run.stderr.strip()}")
        return run.stdout


def _kwok_node(name: str, *, apart: bool) -> dict[str, object]:
    taint = {"key": _KWOK_ANNOTATION, "value": "fake", "effect": "NoSchedule"}
    size = {
        "cpu": "1000",
        "memory": "1Ti",
        "ephemeral-storage": "9Ti",
        "pods": "10000",
        "nvidia.com/gpu": "1000",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_KWOK_ANNOTATION: "fake"},
            "labels": {"kubernetes.io/hostname": name, "type": "kwok"},
        },
        "spec": {"taints": [taint] if apart else []},
        "status": {"allocatable": size, "capacity": size},
    }

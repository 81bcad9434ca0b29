"""How the containers of a pod reach the API server: address, service account, token path.

In isolated networks everything is where clients look for it in any cluster. Otherwise that path
belongs to the machine, so KUBECONFIG points to a file of the pod.
"""

from pathlib import Path
from typing import Final

import attrs
import yaml

from dlctl.local.kubeconfig import kubeconfig
from dlctl.local.node.protocol import Mount

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# As in kubeadm clusters; outside the range of the pods.
IN_CLUSTER_IP: Final = "10.96.0.1"
IN_CLUSTER_PORT: Final = 443
_OWNER_ONLY: Final = 0o600


@attrs.frozen
class ApiAccess:
    """The API server's address as seen from containers, and its certificate authority."""

    host: str
    port: int
    ca_pem: bytes

    @property
    def env(self) -> dict[str, str]:
        """Return the variables by which programs detect that they run in a cluster."""
        port = str(self.port)
        return {
            "KUBERNETES_SERVICE_HOST": self.host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }

    @property
    def in_cluster(self) -> "ApiAccess":
        """Return the same server as isolated pods reach it."""
        return attrs.evolve(self, host=IN_CLUSTER_IP, port=IN_CLUSTER_PORT)

    def kubeconfig(self, token: str, namespace: str, ca_path: Path) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        cluster = {"server": f"https://{host}:{self.port}", "certificate-authority": str(ca_path)}
        return yaml.safe_dump(kubeconfig(cluster, token, namespace))


@attrs.frozen
class ServiceAccountFiles:
    """The files of a pod's service account, in a directory of this machine."""

    directory: Path

    @property
    def kubeconfig(self) -> Path:
        return self.directory.parent / "kubeconfig"

    def write(self, access: ApiAccess, token: str, namespace: str) -> None:
        """Write the files that clients expect; blocking."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        ca_path = self.directory / "ca.crt"
        files = {
            ca_path: access.ca_pem.decode(),
            self.directory / "token": token,
            self.directory / "namespace": namespace,
            self.kubeconfig: access.kubeconfig(token, namespace, ca_path),
        }
        for path, text in files.items():
            path.touch(mode=_OWNER_ONLY)
            path.write_text(text, encoding="utf-8")

    def mount(self) -> Mount:
        return Mount(str(self.directory), MOUNT_PATH, read_only=True)

"""The identities of a cluster: certificate authority, admin token, signing key.

Files in the cluster's folder, created at each start; the token belongs to the cluster admins.
"""

import json
import secrets
import subprocess
from pathlib import Path

import attrs
import trustme

from e2e.cluster.addresses import GATEWAY, SERVICE

_NAMES = (
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    GATEWAY,
    SERVICE,
)


@attrs.frozen
class Identity:
    """The credential files; all exist once :meth:`write` has returned."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.directory / "tls.crt"

    @property
    def key(self) -> Path:
        return self.directory / "tls.key"

    @property
    def accounts_key(self) -> Path:
        return self.directory / "sa.key"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    def write(self) -> str:
        """Create all files and return the admin's token."""
        authority = trustme.CA()
        leaf = authority.issue_cert(*_NAMES)
        authority.cert_pem.write_to_path(str(self.authority))
        leaf.private_key_pem.write_to_path(str(self.key))
        self.certificate.write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
        command = ["openssl", "genrsa", "-out", str(self.accounts_key), "2048"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        token = secrets.token_hex(16)
        self.tokens.touch(mode=0o600)
        self.tokens.write_text(f'{token},admin,admin,"system:masters"\n')
        return token

    def write_kubeconfig(self, path: Path, server: str, token: str) -> None:
        """Write the kubeconfig, readable by its owner alone."""
        cluster = {"server": server, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": "e2e", "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))

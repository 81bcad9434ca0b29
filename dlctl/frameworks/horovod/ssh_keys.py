"""The key that launchers use to log in to workers, as files of ``~/.ssh``.

The files have et-operator's names; ``id_rsa`` contains an Ed25519 key.
"""

import base64
from collections.abc import Mapping
from typing import Final

PRIVATE_KEY: Final = "id_rsa"
PUBLIC_KEY: Final = "id_rsa.pub"
CLIENT_CONFIG: Final = "config"
AUTHORIZED_KEYS: Final = "authorized_keys"
# Workers are new each time, so their host keys are unknown. The keep-alive closes connections to a
# worker that is lost with its node within a minute; otherwise programs would wait indefinitely.
_CLIENT_CONFIG_TEXT: Final = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ConnectTimeout 10
ServerAliveInterval 15
ServerAliveCountMax 4
"""


def key_pair(comment: str) -> tuple[bytes, bytes]:
    """Return a new private key and its public key, each in OpenSSH format."""
    # Imported late: it needs more memory than all other imports of the frameworks.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private, b"%s %s\n" % (public, comment.encode())


def secret_data(comment: str) -> Mapping[str, str]:
    """Return the ``data`` of a Secret with a new key."""
    private, public = key_pair(comment)
    files = {PRIVATE_KEY: private, PUBLIC_KEY: public, CLIENT_CONFIG: _CLIENT_CONFIG_TEXT.encode()}
    return {name: base64.b64encode(content).decode() for name, content in files.items()}

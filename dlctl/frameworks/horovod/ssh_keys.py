"""The key by which a launcher logs in to its workers, as files of ``~/.ssh``.

The files keep the names that et-operator's have; what is in ``id_rsa`` is an Ed25519 key.
"""

import base64
from collections.abc import Mapping
from typing import Final

PRIVATE_KEY: Final = "id_rsa"
PUBLIC_KEY: Final = "id_rsa.pub"
CLIENT_CONFIG: Final = "config"
AUTHORIZED_KEYS: Final = "authorized_keys"
# Workers are new each time, so nobody knows their host keys. A worker that is gone for good, with
# its node, ends the connections to it within a minute; else its program would wait for ever.
_CLIENT_CONFIG_TEXT: Final = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ConnectTimeout 10
ServerAliveInterval 15
ServerAliveCountMax 4
"""


def key_pair(comment: str) -> tuple[bytes, bytes]:
    """Return a new private key and its public key, each as a file of OpenSSH's."""
    # Not before it is needed: it takes more memory than all the rest of what frameworks import.
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
    """Return the ``data`` of a Secret that holds a new key."""
    private, public = key_pair(comment)
    files = {PRIVATE_KEY: private, PUBLIC_KEY: public, CLIENT_CONFIG: _CLIENT_CONFIG_TEXT.encode()}
    return {name: base64.b64encode(content).decode() for name, content in files.items()}

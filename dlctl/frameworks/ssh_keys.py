"""Keys by which launchers log in to workers, as files of ``~/.ssh``.

The files have the names of et-operator and mpi-operator, whatever kind of key they contain.
"""

import base64
from collections.abc import Mapping
from typing import Final

PRIVATE_KEY: Final = "id_rsa"
PUBLIC_KEY: Final = "id_rsa.pub"
AUTHORIZED_KEYS: Final = "authorized_keys"


def ed25519_pair(comment: str) -> tuple[bytes, bytes]:
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


def p521_pair() -> tuple[bytes, bytes]:
    """Return a new private key in SEC 1 format, and its public key in OpenSSH format."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private, public + b"\n"


def secret_data(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return the ``data`` of a Secret with these files."""
    return {name: base64.b64encode(content).decode() for name, content in files.items()}

"""The identity that an API server keeps over a restart: its authority, its token, its key."""

import os
import secrets
from pathlib import Path
from typing import Self

import attrs
import msgspec
import trustme

from dlctl.errors import ConfigError
from dlctl.local.private_file import write_private_file


class _Stored(msgspec.Struct):
    token: str
    signing_key: bytes
    certificate: str
    private_key: str


@attrs.frozen(repr=False)
class Identity:
    """The token of the owner, the key that signs those of accounts, and the authority."""

    token: str = attrs.field(factory=lambda: secrets.token_urlsafe(24))
    signing_key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32))
    authority: trustme.CA = attrs.field(factory=trustme.CA)

    @classmethod
    def kept_in(cls, path: Path) -> Self:
        """Return the identity in a file that only its owner may read; create it if it is missing.

        :raises ConfigError: if the file is damaged.
        """
        if not path.exists():
            created = cls()
            _write(created, path)
            return created
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
            authority = trustme.CA.from_pem(
                stored.certificate.encode(), stored.private_key.encode()
            )
        except ValueError as error:
            raise ConfigError(f"{path} is damaged ({error}); remove it for a new one") from error
        return cls(stored.token, stored.signing_key, authority)


def _write(identity: Identity, path: Path) -> None:
    certificate, private_key = identity.authority.cert_pem, identity.authority.private_key_pem
    content = _Stored(
        identity.token,
        identity.signing_key,
        certificate.bytes().decode(),
        private_key.bytes().decode(),
    )
    new = path.with_suffix(".new")
    write_private_file(new, msgspec.json.encode(content).decode())
    os.replace(new, path)

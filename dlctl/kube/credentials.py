"""What a request needs to be let in: headers and a TLS context, both of which may change.

Where they come from is :mod:`dlctl.kube.config`'s matter; nothing here knows a kubeconfig.
"""

import ssl
from collections.abc import Mapping
from typing import Protocol

import attrs


@attrs.frozen
class Access:
    """How to be let in now; without a TLS context the server speaks plain HTTP."""

    # Out of the repr, so that no log line and no traceback can show a token.
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    tls: ssl.SSLContext | None = None


class Credentials(Protocol):
    """A source of access that keeps itself fresh."""

    async def access(self, refused: Access | None = None) -> Access:
        """Return the access to use, another one than the server has just refused if possible."""
        ...


@attrs.frozen
class FixedCredentials:
    """Access that never changes."""

    fixed: Access = Access()

    async def access(self, refused: Access | None = None) -> Access:
        return self.fixed


def tls_context(
    *,
    ca_pem: str | None = None,
    certificate: tuple[str, str] | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """Return a context that trusts this authority, or the system's if there is none.

    ``certificate`` names the files of the client's certificate and key.
    """
    context = ssl.create_default_context(cadata=ca_pem)
    # Clusters as old as their certificates fail the strict check that newer Pythons turn on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificate:
        context.load_cert_chain(*certificate)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

"""Credentials of a request: headers and a TLS context, both of which may change.

They come from :mod:`dlctl.kube.config`; nothing here knows a kubeconfig.
"""

import ssl
from collections.abc import Mapping
from typing import Protocol

import attrs


@attrs.frozen
class Access:
    """The current credentials; without a TLS context the server speaks plain HTTP."""

    # Not in the repr, so that no log line or traceback shows a token.
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    tls: ssl.SSLContext | None = None


class Credentials(Protocol):
    """A source of credentials that keeps them fresh."""

    async def access(self, rejected: Access | None = None) -> Access:
        """Return the credentials to use; if possible, others than those just rejected."""
        ...


@attrs.frozen
class FixedCredentials:
    """Credentials that never change."""

    fixed: Access = Access()

    async def access(self, rejected: Access | None = None) -> Access:
        return self.fixed


def tls_context(
    *,
    ca_pem: str | None,
    certificate: tuple[str, str] | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """Return a context that trusts this authority, or the system's without one.

    ``certificate`` is the paths of the client's certificate and key.
    """
    context = ssl.create_default_context(cadata=ca_pem)
    # Certificates of old clusters fail the strict check that newer Pythons enable.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificate:
        context.load_cert_chain(*certificate)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

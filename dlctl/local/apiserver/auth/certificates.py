"""The serving certificate, because kubectl sends no token without TLS.

Private keys live in memory and, while they are loaded, in a file that only the owner can read.
"""

import ipaddress
import ssl
from typing import Final

import attrs
import trustme

from dlctl.local.apiserver.storage.cluster_ips import API_IP

# As pods address it in any cluster.
_IN_CLUSTER_NAMES: Final = (
    API_IP,
    "kubernetes",
    *(f"kubernetes.default{end}" for end in ("", ".svc", ".svc.cluster.local")),
)


@attrs.frozen
class ServingCertificate:
    """The server's TLS context, and the certificate authority that clients trust."""

    context: ssl.SSLContext
    ca_pem: bytes


def issue_serving_certificate(authority: trustme.CA, host: str) -> ServingCertificate:
    """Issue a certificate for the host, for this machine and for pods."""
    names = dict.fromkeys(("localhost", "127.0.0.1", host, *_IN_CLUSTER_NAMES))
    certificate = authority.issue_cert(*(name for name in names if not _is_wildcard(name)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate.configure_cert(context)
    return ServingCertificate(context, authority.cert_pem.bytes())


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False

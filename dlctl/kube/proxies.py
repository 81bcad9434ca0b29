"""The proxy that the environment names for a server, as in Go's net/http, and so for kubectl. Pure.

Python's own rules differ: they know no address ranges, and send loopback addresses to a proxy.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from dlctl.errors import ConfigError
from dlctl.kube.http_urls import DEFAULT_PORTS, is_http_url


def proxy_for(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a server; None if it is reached directly.

    :raises ConfigError: if it is no HTTP proxy.
    """
    url = urlsplit(server)
    name = f"{url.scheme.upper()}_PROXY"
    proxy = _variable(environment, name)
    if not proxy or not url.hostname or _is_excluded(url, _variable(environment, "NO_PROXY")):
        return None
    return http_proxy(proxy if "://" in proxy else f"http://{proxy}", name)


def http_proxy(proxy: str, source: str) -> str:
    """Return the URL of a proxy.

    :raises ConfigError: if requests cannot be sent through it; the message has no credentials.
    """
    if not is_http_url(proxy):
        raise ConfigError(f"{source}: not the URL of an HTTP proxy, as http://HOST:PORT is")
    return proxy


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.lower()) or "").strip()


def _is_excluded(server: SplitResult, no_proxy: str) -> bool:
    host = (server.hostname or "").rstrip(".")
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    port = server.port or DEFAULT_PORTS.get(server.scheme)
    return any(_covers(entry.strip().lower(), host, port) for entry in no_proxy.split(","))


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY is about a host: a name, address or range, or ``*``."""
    if not entry or entry == "*":
        return bool(entry)
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, own_port = entry, ""
    if _address(entry) is None and ":" in entry:
        name, _, own_port = entry.rpartition(":")
    if own_port and own_port != str(port):
        return False
    if excluded := _address(name.strip("[]")):
        return address == excluded
    if address is not None:
        # Names are compared with names only.
        return False
    suffix = name.removeprefix("*")
    return host == name or host.endswith(suffix if suffix.startswith(".") else f".{suffix}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None

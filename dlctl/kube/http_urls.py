"""URLs of servers and proxies, checked before a request is made. Pure."""

from typing import Final
from urllib.parse import urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def is_http_url(text: str) -> bool:
    """Return whether requests can be sent to a URL: it has a scheme, a host and a valid port."""
    try:
        url = urlsplit(text)
        return url.scheme in DEFAULT_PORTS and bool(url.hostname) and url.port != 0
    except ValueError:
        return False

"""Replace names and paths in text, where pods share the machine's network and file system.

A service's name becomes the loopback address, and a volume's path its actual directory. Only whole
names are replaced, in command, arguments and environment; names that a program composes itself are
not. In a pod with a subdomain, ``HOST.SUBDOMAIN`` is replaced instead of the bare subdomain.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dlctl.local.node.api_types import NodeService
from dlctl.local.node.network.addresses import LOOPBACK_IP
from dlctl.local.node.network.hosts_files import qualified

_ANY_HOST: Final = "*."


def replace(text: str, replacements: Mapping[str, str]) -> str:
    """Replace each whole name or leading path; the longest match wins."""
    if not replacements:
        return text
    longest_first = sorted(replacements, key=len, reverse=True)
    names = "|".join(map(_pattern, longest_first))
    # A match must not begin within a word or path, but a name may follow the // of a URL.
    pattern = rf"(?<![\w.-])(?<!(?<!/)/)(?:{names})(?![\w-]|\.\w)"

    def value(found: re.Match[str]) -> str:
        name = found.group()
        return replacements.get(name) or replacements[_ANY_HOST + name.partition(".")[2]]

    return re.sub(pattern, value, text)


def _pattern(name: str) -> str:
    host = r"[\w-]+\." if name.startswith(_ANY_HOST) else ""
    return host + re.escape(name.removeprefix(_ANY_HOST))


def service_names(
    services: Iterable[NodeService], namespace: str, subdomain: str = ""
) -> dict[str, str]:
    """Return every name by which a pod of the namespace and subdomain may address a service."""
    names: list[str] = []
    for service in services:
        name, home = service.metadata.name, service.metadata.namespace or ""
        forms = qualified(name, home)
        if home == namespace:
            forms.append(name)
            if name == subdomain:
                forms = [_ANY_HOST + form for form in forms]
        names += forms
    return dict.fromkeys(names, LOOPBACK_IP)

"""Replace names and paths in text, where pods share the machine's network and file system.

A service's name becomes the loopback address, and a volume's path its actual directory. Only whole
names are replaced, in command, arguments and environment; names that a program composes itself are
not.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dlctl.local.node.addresses import LOOPBACK_IP
from dlctl.local.node.api_types import NodeService
from dlctl.local.node.hosts_files import qualified


def replace(text: str, replacements: Mapping[str, str]) -> str:
    """Replace each whole name or leading path; the longest match wins."""
    if not replacements:
        return text
    longest_first = sorted(replacements, key=len, reverse=True)
    names = "|".join(re.escape(name) for name in longest_first)
    # A match must not begin within a word or path, but a name may follow the // of a URL.
    pattern = rf"(?<![\w.-])(?<!(?<!/)/)(?:{names})(?![\w-]|\.\w)"
    return re.sub(pattern, lambda found: replacements[found.group()], text)


def service_names(services: Iterable[NodeService], namespace: str) -> dict[str, str]:
    """Return every name by which a pod of the namespace may address a service."""
    names: list[str] = []
    for service in services:
        name, home = service.metadata.name, service.metadata.namespace or ""
        names += qualified(name, home)
        if home == namespace:
            names.append(name)
    return dict.fromkeys(names, LOOPBACK_IP)


def volume_paths(mounts: Iterable[tuple[str, Path]]) -> dict[str, str]:
    return {path.rstrip("/"): str(source) for path, source in mounts}

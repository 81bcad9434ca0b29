"""Files of /etc that isolated pods see instead of the machine's: where names are looked up.

Names of the cluster are in a hosts file of each pod; see ``hosts_files``.
"""

from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from dlctl.local.node.network.addresses import LOOPBACK_IP, NODE_IP

_NSSWITCH: Final = Path("/etc/nsswitch.conf")
_HOSTS: Final = Path("/etc/hosts")


def write_etc(directory: Path, *, outside_names: bool) -> dict[str, Path]:
    """Write the files, and return them by target.

    Names are looked up in the hosts file first: a name server that listens on a socket
    (systemd-resolved) would deny the names of services before the file was read.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    server, sources = (NODE_IP, "files dns") if outside_names else (LOOPBACK_IP, "files")
    texts = {"nsswitch.conf": _nsswitch(sources), "resolv.conf": f"nameserver {server}\n"}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return {f"/etc/{name}": directory / name for name in texts if Path("/etc", name).exists()}


def machine_hosts(path: Path = _HOSTS) -> list[str]:
    """Return the lines of the machine's hosts file that also hold in pods."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [line for line in lines if _is_outside(line.partition("#")[0])]


def _is_outside(line: str) -> bool:
    with suppress(ValueError, IndexError):
        return not ip_address(line.split()[0]).is_loopback
    return False


def _nsswitch(sources: str) -> str:
    try:
        lines = _NSSWITCH.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    kept = [line for line in lines if not line.strip().startswith("hosts:")]
    return "\n".join([*kept, f"hosts: {sources}", ""])

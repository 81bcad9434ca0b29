"""Settings with which ssh and sshd of this machine use the keys that a pod mounts.

Images for such jobs bring them: keys in the home of the image's user, sshd on a port that needs no
root, hosts that are new each time and therefore not verified. Here the programs, the user and the
settings are the machine's, so the keys are also mounted where that user has them, and files with
the settings come first in the machine's own.
"""

import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dlctl.local.node.protocol import Mount

_KEYS: Final = ".ssh"
_PRIVATE_KEY: Final = "id_rsa"
_USER_CONFIG: Final = "config"
# Its own directory, which sshd requires of root, and of nobody else.
_RUN_DIRECTORY: Final = "/run/sshd"
_SETTINGS: Final = "/etc/ssh/{program}_config.d"
# The first of several values counts, and files are read in the order of their names.
_FILE: Final = "00-dlctl.conf"
_IMAGES_PORT: Final = 2222
_CLIENT: Final = f"""\
Host *
Port {_IMAGES_PORT}
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
"""
_SERVER: Final = f"""\
Port 22
Port {_IMAGES_PORT}
PermitRootLogin prohibit-password
PidFile none
StrictModes no
"""


def ssh_mounts(mounts: Iterable[Mount], directory: Path, path: str) -> Iterator[Mount]:
    """Yield further mounts for a container that mounts keys; ``path`` is its PATH.

    Files that they need are written to the directory.
    """
    keys = next((mount for mount in mounts if Path(mount.target).name == _KEYS), None)
    if keys is None:
        return
    home = _home_keys()
    if home and home != os.path.realpath(keys.target):
        yield Mount(keys.source, home, keys.read_only)
    if os.geteuid() == 0 and not Path(_RUN_DIRECTORY).is_dir():
        empty = directory / "run"
        empty.mkdir(mode=0o755, parents=True, exist_ok=True)
        yield Mount(str(empty), _RUN_DIRECTORY)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for program, text in _settings(keys, path).items():
        target = Path(_SETTINGS.format(program=program))
        if target.is_dir():
            (directory / program).write_text(text, encoding="utf-8")
            yield Mount(str(directory / program), str(target / _FILE))


def _home_keys() -> str:
    """Return where programs look for the user's keys, whatever HOME is; empty if nowhere."""
    try:
        return os.path.realpath(Path(pwd.getpwuid(os.geteuid()).pw_dir, _KEYS))
    except KeyError:
        return ""


def _settings(keys: Mount, path: str) -> dict[str, str]:
    server = f'{_SERVER}SetEnv "PATH={path}"\n'
    if Path(keys.source, _PRIVATE_KEY).exists():
        # Those of the machine are readable by root only.
        server += f"HostKey {keys.target}/{_PRIVATE_KEY}\n"
    if os.geteuid() != 0:
        server += "UsePAM no\n"
    # Client settings may come with the keys.
    own = Path(keys.source, _USER_CONFIG).exists()
    return {"sshd": server} if own else {"sshd": server, "ssh": _CLIENT}

"""Requirements of the embedded cluster: a loopback address, and open files."""

import errno
import resource
import socket
from typing import Final

from dlctl.errors import ConfigError
from dlctl.local.node.network.addresses import LOOPBACK_IP

# The cluster itself needs 85, and each replica 5.
_MIN_OPEN_FILES: Final = 256
# Some programs close every number up to their limit, which may be a billion.
_MAX_OPEN_FILES: Final = 1 << 16


def check_loopback() -> None:
    """Check that programs of this machine reach each other.

    :raises ConfigError: if they do not, with the command that repairs it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((LOOPBACK_IP, 0))
            # This only looks for a route: nothing is sent.
            probe.connect(probe.getsockname())
        except OSError as error:
            is_missing = error.errno == errno.EADDRNOTAVAIL
            fix = f"ip addr add {LOOPBACK_IP}/8 dev lo" if is_missing else "ip link set lo up"
            raise ConfigError(
                f"the embedded cluster needs {LOOPBACK_IP} ({error.strerror}): run `{fix}`"
            ) from error


def allow_open_files() -> None:
    """Raise this process's limit of open files as far as it may.

    :raises ConfigError: if that is not enough.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > _MAX_OPEN_FILES:
        wanted = _MAX_OPEN_FILES
    elif hard >= _MIN_OPEN_FILES:
        wanted = hard
    else:
        raise ConfigError(
            f"this process may open {hard} files, and the embedded cluster needs "
            f"{_MIN_OPEN_FILES}, with many replicas more: raise the hard limit (`ulimit -Hn`)"
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""Linux calls that Python 3.11 lacks: namespaces, mounts, process control.

Every call raises OSError, as the functions of ``os`` do. Nothing is decided here.
"""

import ctypes
import os
from collections.abc import Iterable
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_MOVE: Final = 8192
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

MNT_DETACH: Final = 2

IN_MODIFY: Final = 0x2

_FALLOC_FL_KEEP_SIZE: Final = 0x1
_FALLOC_FL_PUNCH_HOLE: Final = 0x2

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_RAISE: Final = 2
_CAP_NET_ADMIN: Final = 12
_CAPABILITY_VERSION_3: Final = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode(),
    )
    _check(result, f"mount {target}")


def umount(target: str, flags: int = 0) -> None:
    _check(_libc.umount2(target.encode(), flags), f"umount {target}")


def sethostname(name: str) -> None:
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), "sethostname")


def signalfd(signals: Iterable[int]) -> int:
    """Return a descriptor that is readable while one of these blocked signals waits."""
    word_bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask = (ctypes.c_ulong * (1024 // word_bits))()
    for number in signals:
        mask[(number - 1) // word_bits] |= 1 << (number - 1) % word_bits
    fd: int = _libc.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK)
    _check(min(fd, 0), "signalfd")
    return fd


def punch_hole(fd: int, size: int) -> None:
    """Free the space of the first bytes of a file, which read as zeros then."""
    mode = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
    _check(_libc.fallocate(fd, mode, ctypes.c_int64(0), ctypes.c_int64(size)), "fallocate")


def inotify_init() -> int:
    """Return a descriptor that announces changes of files; reading it never waits."""
    fd: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    _check(min(fd, 0), "inotify_init")
    return fd


def inotify_add_watch(fd: int, path: str, mask: int) -> int:
    """Return the number by which events name the file."""
    watch: int = _libc.inotify_add_watch(fd, path.encode(), ctypes.c_uint32(mask))
    _check(min(watch, 0), f"inotify {path}")
    return watch


def inotify_rm_watch(fd: int, watch: int) -> None:
    """Remove a watch."""
    _check(_libc.inotify_rm_watch(fd, watch), "inotify_rm_watch")


def die_with_parent(signal: int) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def pass_on_net_admin() -> None:
    """Keep the right to configure the network when this process executes another program.

    Without this, only root keeps it, also in a user namespace.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable; those from 32 on follow.
    held = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, held), "capget")
    held[2] |= 1 << _CAP_NET_ADMIN
    _check(_libc.capset(header, held), "capset")
    _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_NET_ADMIN, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")

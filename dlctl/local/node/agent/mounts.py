"""The file system of a container: the machine's own, with the container's mounts on top.

Runs in the container's mount namespace. A missing mount point is created on a tmpfs, so that no
file or directory appears on the machine.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dlctl.local.node import linux
from dlctl.local.node.protocol import MESSAGE_PATH, Mount

_ROOT = Path("/")
_DEV = Path("/dev")
_MESSAGE = Path(MESSAGE_PATH)
# Where a copy of /dev is made; its own entries are hidden meanwhile.
_STAGE = Path("/tmp")
# Nothing starts without what these hold.
_IRREPLACEABLE = ("/dev", "/proc")
# Inside a user namespace, a remount without one of these flags is refused.
_KEPT_FLAGS = (
    (os.ST_NOSUID, linux.MS_NOSUID),
    (os.ST_NODEV, linux.MS_NODEV),
    (os.ST_NOEXEC, linux.MS_NOEXEC),
)


def mount_all(mounts: Iterable[Mount], scratch: Path) -> None:
    """Mount each source at its target; outer paths first, so that they do not hide inner ones.

    :raises ValueError: if a target is a directory that a container needs.
    """
    ordered = sorted(map(_resolved, mounts), key=lambda entry: Path(entry.target).parts)
    for entry in ordered:
        if _hides_what_is_needed(entry):
            raise ValueError(
                f"mountPath {entry.target}: a container needs what is there: mount the volume at "
                "another path"
            )
    # All are opened before the first is mounted, which may hide the others (on /tmp).
    sources = [os.open(entry.source, os.O_PATH | os.O_CLOEXEC) for entry in ordered]
    if any(_lacks_parent(Path(entry.target)) for entry in ordered):
        _overlay_tmpfs(_ROOT, scratch)
    done: list[Path] = []
    for entry, fd in zip(ordered, sources, strict=True):
        target = Path(entry.target)
        if target == _MESSAGE and not target.exists():
            os.close(fd)
            continue
        if not _is_accessible(target):
            directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            _make_mount_point(target, directory=directory, inside=done)
        linux.mount(f"/proc/self/fd/{fd}", str(target), flags=linux.MS_BIND | linux.MS_REC)
        os.close(fd)
        if entry.read_only:
            _make_read_only(target)
        done.append(target)


def add_message_file() -> None:
    """Create the default file for termination messages in /dev, if this machine allows it.

    Once for all containers, so that none needs a copy of /dev; they mount their own over it.
    """
    if _MESSAGE.exists():
        return
    try:
        _make_mount_point(_MESSAGE, directory=False, inside=())
    except OSError as error:
        sys.stderr.write(f"no {_MESSAGE}: {error}\n")


def _resolved(entry: Mount) -> Mount:
    # The mount point behind a dangling link is created at the link's target.
    return Mount(entry.source, os.path.realpath(entry.target), entry.read_only)


def _hides_what_is_needed(mount: Mount) -> bool:
    if mount.target == str(_ROOT):
        return True
    return mount.target in _IRREPLACEABLE and not os.path.samefile(mount.source, mount.target)


def _lacks_parent(target: Path) -> bool:
    """Return whether not even the first directory on the way to the target exists."""
    return not (_ROOT / target.relative_to(_ROOT).parts[0]).exists()


def _is_accessible(path: Path) -> bool:
    with suppress(PermissionError):
        return path.exists()
    return False


def _make_read_only(target: Path) -> None:
    now = os.statvfs(target).f_flag
    kept = sum(flag for shown, flag in _KEPT_FLAGS if now & shown)
    linux.mount("", str(target), flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | kept)


def _make_mount_point(target: Path, *, directory: bool, inside: Iterable[Path]) -> None:
    parent = next(path for path in target.parents if _is_accessible(path) and path.is_dir())
    if parent != _ROOT and not any(parent.is_relative_to(volume) for volume in inside):
        _overlay_tmpfs(parent, _STAGE if parent == _DEV else parent)
    target.parent.mkdir(parents=True, exist_ok=True)
    if directory:
        target.mkdir()
    else:
        target.touch()


def _overlay_tmpfs(parent: Path, place: Path) -> None:
    """Replace a directory by a tmpfs that shows the same entries and accepts new ones.

    Nothing can be mounted over the root, so its copy is made elsewhere and becomes the root. That
    of /dev is made elsewhere because it contains the original. A directory that this user may not
    list, such as another's home, appears to be empty.
    """
    with _opened(parent) as behind:
        mode = parent.stat().st_mode & 0o7777
        linux.mount("tmpfs", str(place), "tmpfs", data=f"mode={mode:o}")
        try:
            _bind_entries(behind, place, are_devices=parent == _DEV)
            if parent == _ROOT:
                os.chroot(place)
            elif parent != place:
                linux.mount(str(place), str(parent), flags=linux.MS_MOVE)
        except OSError:
            # A half of a copy would hide what is there.
            linux.umount(str(place), linux.MNT_DETACH)
            raise
    # The old working directory may be the one below the tmpfs.
    os.chdir(_ROOT)


def _names(directory: Path) -> list[str]:
    with suppress(PermissionError):
        return sorted(os.listdir(directory))
    return []


@contextmanager
def _opened(directory: Path) -> Iterator[Path]:
    """Keep a directory accessible, whatever is mounted over it."""
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _bind_entries(behind: Path, place: Path, *, are_devices: bool) -> None:
    for name in _names(behind):
        if not are_devices or name != "ptmx":
            _bind_entry(behind / name, place / name)
    if are_devices:
        _link_ptmx(behind, place)


def _link_ptmx(behind: Path, place: Path) -> None:
    """Keep new terminals possible: the kernel looks for ``pts`` in the directory of ``ptmx``."""
    whole = place / ".machine"
    whole.mkdir()
    linux.mount(str(behind), str(whole), flags=linux.MS_BIND | linux.MS_REC)
    (place / "ptmx").symlink_to(Path(whole.name, "ptmx"))


def _bind_entry(entry: Path, twin: Path) -> None:
    if entry.is_symlink():
        twin.symlink_to(entry.readlink())
        return
    if entry.is_dir():
        twin.mkdir()
    else:
        twin.touch()
    linux.mount(str(entry), str(twin), flags=linux.MS_BIND | linux.MS_REC)

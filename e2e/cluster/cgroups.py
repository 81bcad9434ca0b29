"""The control groups of a real node: a tree of its own, so that two nodes keep apart.

Both cgroup versions are supported; a kubelet does not create the root of its tree itself.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOUNTED: Final = Path("/sys/fs/cgroup")
_CONTROLLERS: Final = ("cpu", "cpuset", "io", "memory", "pids")


def make(root: str) -> None:
    """Create a root, such as ``/cluster-node-1``, in each hierarchy of the machine."""
    for hierarchy in _hierarchies():
        (hierarchy / root.lstrip("/")).mkdir(parents=True, exist_ok=True)
    if _is_unified():
        _delegate(root)


def _delegate(root: str) -> None:
    """Enable the controllers that a kubelet needs in the groups on the way down."""
    parent = _MOUNTED
    for name in ("", *root.strip("/").split("/")):
        parent /= name
        for controller in _CONTROLLERS:
            # Controllers that the machine lacks or does not delegate are skipped.
            with suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")


def remove(root: str) -> None:
    """Remove a root and everything below; groups with running processes stay."""
    for hierarchy in _hierarchies():
        top = hierarchy / root.lstrip("/")
        groups = sorted(top.rglob("*/"), key=lambda group: -len(group.parts))
        for group in (*(g for g in groups if g.is_dir()), top):
            with suppress(OSError):
                group.rmdir()


def processes(part: str) -> Iterator[int]:
    """Yield all processes in groups whose path has this part, however the runtime spells it."""
    wanted = part.replace("_", "-")
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):
            if wanted in path.read_text().replace("_", "-"):
                yield int(path.parent.name)


def _is_unified() -> bool:
    return (_MOUNTED / "cgroup.controllers").exists()


def _hierarchies() -> Iterator[Path]:
    if _is_unified():
        yield _MOUNTED
    else:
        yield from (path for path in _MOUNTED.iterdir() if path.is_dir())

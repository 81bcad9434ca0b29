"""Clusters by name: where each one that runs says how to reach it and how to end it."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from dlctl.errors import ConfigError
from dlctl.local.file_lock import HeldError, exclusive_lock, holder

DEFAULT_NAME: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


@attrs.frozen
class NamedCluster:
    """The files of one name; they stay when its cluster ends, unless it has never started."""

    name: str
    directory: Path

    @classmethod
    def of(cls, name: str) -> "NamedCluster":
        """Return the cluster of a name.

        :raises ConfigError: if the name is malformed, or there is no place for its files.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"--name {name}: use lower-case letters, digits and dashes")
        return cls(name, _directory() / name)

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def process(self) -> int | None:
        """Return the ID of the process that runs it; None if it does not run."""
        return holder(self._lock)

    @contextmanager
    def claimed(self) -> Iterator[int]:
        """Take the name for the duration of the block, and yield the lock.

        :raises ConfigError: if a cluster of this name is running, or its files have no place.
        """
        with ExitStack() as stack:
            try:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = stack.enter_context(exclusive_lock(self._lock))
            except HeldError:
                raise ConfigError(
                    f"a cluster named {self.name} is running; end it with `{self.end_command}`, "
                    "or choose another --name"
                ) from None
            except OSError as error:
                raise ConfigError(
                    f"{self.directory}: {error.strerror}; XDG_STATE_HOME names another place"
                ) from error
            stack.callback(self._remove_unless_started)
            yield lock

    def _remove_unless_started(self) -> None:
        """Remove what has no log: the lock is held, so nobody else is about to start."""
        if not self.log.exists():
            self._lock.unlink(missing_ok=True)
            with suppress(OSError):
                self.directory.rmdir()

    @property
    def end_command(self) -> str:
        option = "" if self.name == DEFAULT_NAME else f" --name {self.name}"
        return f"dlctl down{option}"

    @property
    def _lock(self) -> Path:
        return self.directory / "lock"


def running_clusters() -> list[str]:
    """Return the names of the clusters that run, as far as their files can be read."""
    try:
        directory = _directory()
    except ConfigError:
        return []
    found = [path.name for path in directory.glob("*") if _NAME.fullmatch(path.name)]
    return sorted(name for name in found if _is_running(name))


def _is_running(name: str) -> bool:
    # Those that sudo has started are root's.
    with suppress(OSError):
        return NamedCluster.of(name).process is not None
    return False


def _directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if state.startswith("~"):
        raise ConfigError("the user has no home directory: XDG_STATE_HOME names another place")
    return Path(state) / "dlctl" / "clusters"

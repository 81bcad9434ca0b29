"""The directory that keeps a cluster over restarts, for one process at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import attrs

from dlctl.errors import ConfigError
from dlctl.local.apiserver.auth.identity import Identity
from dlctl.local.file_lock import HeldError, exclusive_lock
from dlctl.local.private_file import write_private_file


@attrs.frozen
class DataDirectory:
    """Where the parts of a cluster are kept; only the owner may read them."""

    path: Path

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> "Iterator[Self]":
        """Create the directory if need be, and lock it for the duration of the block.

        :raises ConfigError: if another process uses it, or it cannot be created.
        """
        with ExitStack() as stack:
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.chmod(0o700)
                stack.enter_context(exclusive_lock(path / "lock"))
            except HeldError:
                raise ConfigError(
                    f"{path}: another `dlctl up` uses this directory: end it, or choose another "
                    "--data"
                ) from None
            except OSError as error:
                raise ConfigError(f"{path}: {error.strerror}; choose another --data") from error
            yield cls(path)

    @property
    def journal(self) -> Path:
        return self.path / "objects.jsonl"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    def identity(self) -> Identity:
        """Return the identity of the cluster; a new one at the first time.

        :raises ConfigError: if its file is damaged.
        """
        return Identity.kept_in(self.path / "identity.json")

    @property
    def port(self) -> int:
        """Return the port of the last time, so that kubeconfigs stay valid; 0 at the first time."""
        with suppress(OSError, ValueError):
            return int((self.path / "port").read_text())
        return 0

    def keep_port(self, port: int) -> None:
        write_private_file(self.path / "port", f"{port}\n")

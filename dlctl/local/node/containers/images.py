"""Substitutes for container images on a machine without containers: Python environments.

An image is mapped to an environment's prefix, which may contain ``bin/entrypoint`` and directories
of the image that jobs name (``<prefix>/workspace`` for ``workingDir: /workspace``), or to an
executable that is its entrypoint. Nothing is ever pulled.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from dlctl.errors import DlctlError

_STAND_IN_DIRECTORY: Final = Path(__file__).with_name("standins")
# Under the names in the controller's default settings: users need not map them.
_STAND_INS: Final = {
    "alpine": _STAND_IN_DIRECTORY / "alpine",
    # As in training-operator before 1.9.
    "kubeflow/kubectl-delivery": _STAND_IN_DIRECTORY / "kubectl-delivery",
    "ghcr.io/kubeflow/training-v1/kubectl-delivery": _STAND_IN_DIRECTORY / "kubectl-delivery",
}


class NoCommandError(DlctlError):
    """A container relies on the command of an image that is not mapped."""


@attrs.frozen
class Image:
    """An image and its substitute; only the name of one that is not mapped."""

    name: str
    target: Path | None = None

    @property
    def bin(self) -> Path | None:
        if self.target is None:
            return None
        return self.target / "bin" if self.target.is_dir() else self.target.parent

    @property
    def entrypoint(self) -> Path | None:
        if self.target is None:
            return None
        path = self.target / "bin" / "entrypoint" if self.target.is_dir() else self.target
        return path if os.access(path, os.X_OK) else None

    @property
    def pulled_message(self) -> str:
        """Return what takes the place of pulling the image, for an event."""
        if self.target is None:
            return f'Image "{self.name}" is not pulled: its programs are those of this machine'
        return f'Image "{self.name}" is not pulled: it is mapped to {self.target}'

    def command(self, command: list[str] | None, args: list[str] | None) -> list[str]:
        """Return the command to execute; the manifest's overrides the image's own."""
        if command:
            return [*command, *(args or ())]
        if self.entrypoint is not None:
            return [str(self.entrypoint), *(args or ())]
        raise NoCommandError(
            f'the command of image "{self.name}" is unknown, since nothing is pulled: set the '
            f"container's command, or map the image to an environment with bin/entrypoint "
            f"(--image {self.name}=PREFIX)"
        )

    def path(self, inherited: str) -> str:
        """Return the PATH with the environment's programs first."""
        return f"{self.bin}{os.pathsep}{inherited}" if self.bin else inherited

    def directory(self, path: str) -> Path | None:
        """Return the directory that stands for a path of the image, if it exists."""
        candidates = [Path(path)]
        if self.target is not None and self.target.is_dir():
            candidates.append(self.target / path.lstrip("/"))
        return next((candidate for candidate in candidates if candidate.is_dir()), None)


def find(images: Mapping[str, Path], name: str) -> Image:
    """Return the image as mapped by its full name, or by its name without tag or digest."""
    bare = _bare(name)
    return Image(name, images.get(name) or images.get(bare) or _STAND_INS.get(bare))


def unused(images: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the mappings that apply to none of the names, nor to what controllers add."""
    applying = {spelling for name in names for spelling in (name, _bare(name))}
    return [name for name in images if name not in applying and _bare(name) not in _STAND_INS]


def _bare(name: str) -> str:
    """Return the name without tag or digest."""
    bare = name.partition("@")[0]
    return bare.rpartition(":")[0] if ":" in bare.rpartition("/")[2] else bare

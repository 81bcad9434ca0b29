"""Arguments of ``dlctl.Cluster``, and paths of commands, checked where they come in.

Pure but for a look at the disk.
"""

import os
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path

from dlctl.errors import ConfigError


def image_paths(images: object) -> dict[str, Path]:
    """Return the environments of images.

    :raises ConfigError: if one does not exist, or this is no dictionary.
    """
    if not isinstance(images, Mapping):
        raise ConfigError(f"images {images!r}: give a dictionary from names to directories")
    paths = {str(name): path_of(f"image {name}", path) for name, path in images.items()}
    for name, path in paths.items():
        if not path.exists():
            raise ConfigError(f"image {name}: {path} does not exist")
    return paths


def path_of(name: str, value: object) -> Path:
    """Return an argument as an absolute path; without a home directory, ``~`` is a name.

    :raises ConfigError: if it is none.
    """
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{name}: {value!r} is no path")
    return home_path(value).absolute()


def home_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a flag: shells leave a ``~`` after ``--flag=`` to the program."""
    return Path(os.path.expanduser(path))


def check_run_options(timeout_s: object, max_restarts: object, on_line: object) -> None:
    """Check the options of a run: notebooks may have read them from text.

    :raises ConfigError: if one is of another type, or too small.
    """
    if timeout_s is not None and not (isinstance(timeout_s, Real) and float(timeout_s) >= 0):
        raise ConfigError(f"timeout_s {timeout_s!r}: allow a number of seconds, or None for any")
    if max_restarts is not None and not (
        isinstance(max_restarts, Integral) and int(max_restarts) >= 0
    ):
        raise ConfigError(f"max_restarts {max_restarts!r}: allow 0 or more, or None for any")
    if on_line is not None and not callable(on_line):
        raise ConfigError(f"on_line {on_line!r}: give a function of a replica and a line")

"""The content of a file that is meant to be a manifest; others are refused before they are parsed.

``dlctl check *`` also names the checkpoints and archives of a directory.
"""

import pathlib
import sys
from typing import Final

from dlctl.errors import ConfigError, config_errors

_MAX_MIB: Final = 128
# Where texts have no zero, but for UTF-16, which begins with one of the marks.
_BEGINNING_BYTES: Final = 512
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def read_bytes(name: str) -> bytes:
    """Return what a file contains; ``-`` is stdin.

    :raises ConfigError: if it cannot be read, is larger than any manifest, or has no text.
    """
    limit = _MAX_MIB << 20
    with config_errors(f"cannot read {name}"):
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with pathlib.Path(name).open("rb") as file:
                data = file.read(limit + 1)
    if len(data) > limit:
        raise ConfigError(f"{name} is larger than {_MAX_MIB} MiB, and so no manifest")
    return data


def check_text(name: str, data: bytes) -> None:
    """Check that a file is one of text.

    :raises ConfigError: if it is not, with what it may be.
    """
    if b"\0" in data[:_BEGINNING_BYTES] and not data.startswith(_UTF_16_MARKS):
        raise ConfigError(
            f"{name} is not text, as a manifest in YAML or JSON is: unpack an archive first"
        )

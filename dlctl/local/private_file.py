"""Files that contain tokens and keys: their owner alone may read them."""

import os
from pathlib import Path


def write_private_file(path: Path, content: str) -> None:
    """Write a new file in place of an existing one, which others may have open.

    :raises OSError: naming the file.
    """
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error

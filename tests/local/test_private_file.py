"""Files that contain tokens and keys."""

import resource
from pathlib import Path

import pytest

from dlctl.local.private_file import write_private_file


def test_file_that_a_disk_does_not_take_is_named(tmp_path: Path) -> None:
    path = tmp_path / "identity.new"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match=str(path)):
            write_private_file(path, "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

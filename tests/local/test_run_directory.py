"""Temporary directories of clusters whose process was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dlctl.errors import ConfigError
from dlctl.local.run_directory import temporary_run_directory

_HOLDS = """
import time
from dlctl.local.run_directory import temporary_run_directory
with temporary_run_directory() as path:
    (path / "pods").mkdir()
    print(path, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_directory_of_a_killed_process_is_removed_by_the_next_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        with temporary_run_directory():
            assert (path / "pods").exists(), "its process lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.exists()
        with temporary_run_directory() as own:
            assert not path.exists()
    assert not own.exists()


@pytest.mark.parametrize("name", ["dlctl-new", "dlctl-other", "notes"])
def test_other_directories_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    if name != "dlctl-other":
        # Not held yet, and not ours by name.
        (path / "run-directory.lock").write_text("" if name == "dlctl-new" else "1")
    with temporary_run_directory():
        assert path.exists()


def test_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "run-directory.lock").write_text("1")
    os.symlink(target, tmp_path / "dlctl-link")
    with temporary_run_directory():
        assert (target / "run-directory.lock").exists()


def test_machine_without_room_for_a_temporary_directory_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not even root can write there.
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc", "/sys"])
    with (
        pytest.raises(ConfigError, match=r"temporary directory .*is the disk full[?] TMPDIR"),
        temporary_run_directory(),
    ):
        pass


def test_directory_is_absolute_if_that_of_temporary_files_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", ".")
    monkeypatch.setattr(tempfile, "tempdir", None)
    with temporary_run_directory() as path:
        assert path.parent == tmp_path

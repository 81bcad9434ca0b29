"""The log file of a command: kept only after a crash."""

import logging
import tempfile
from pathlib import Path

import pytest

from dlctl.cli.embedded.log_file import log_file
from dlctl.errors import ConfigError


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "run"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        pytest.param(RuntimeError("broken"), True, id="crash"),
        pytest.param(ConfigError("wrong"), False, id="wrong setting"),
        pytest.param(BrokenPipeError(), False, id="nobody reads our output any more"),
    ],
)
def test_log_is_kept_only_after_a_crash(error: Exception, kept: bool, run_dir: Path) -> None:
    with pytest.raises(type(error)), log_file(None, run_dir):
        raise error
    # The rest is removed with the directory of the run, also after a kill.
    assert len([*run_dir.parent.glob("dlctl-*.log")]) == kept


def test_log_that_is_kept_goes_on(run_dir: Path) -> None:
    with log_file(None, run_dir) as log:
        logging.getLogger().warning("before")
        log.keep()
        logging.getLogger().warning("after")
    assert [*run_dir.iterdir()] == []
    before, after = log.path.read_text().splitlines()
    assert "before" in before
    assert "after" in after


def test_log_that_cannot_be_written_is_an_error(run_dir: Path) -> None:
    with (
        pytest.raises(ConfigError, match="cannot write"),
        log_file(run_dir, run_dir),
    ):
        pass


def test_log_of_another_command_is_left_as_it_is(tmp_path: Path, run_dir: Path) -> None:
    path = tmp_path / "controller.log"
    with log_file(path, run_dir):
        logging.getLogger().warning("of the first")
        with (
            pytest.raises(ConfigError, match=f"writes its logs to {tmp_path}: name another"),
            log_file(path, run_dir),
        ):
            pass
    assert "of the first" in path.read_text()
    with log_file(path, run_dir):
        logging.getLogger().warning("of the next")
    assert "of the first" not in path.read_text()


def test_full_disk_drops_the_log_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with log_file(Path("/dev/full"), tmp_path):
        logging.getLogger().warning("dropped")
    assert capfd.readouterr() == ("", "")

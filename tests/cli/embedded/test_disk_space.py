import os
import shutil
from pathlib import Path

import pytest

from dlctl.cli.embedded.disk_space import full_disk_lines, noexec_lines


@pytest.mark.parametrize(("free", "full"), [(0, True), (1 << 30, False)])
def test_full_disk_is_named(
    free: int, full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(os.sep)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    lines = [*full_disk_lines(tmp_path / "run")]
    assert [f"no space is left in {tmp_path}" in line for line in lines] == [True] * full


def test_full_disk_of_the_logs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage, logs = shutil.disk_usage(os.sep), tmp_path / "logs"
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage._replace(free=0 if path == logs else 1 << 30)
    )
    (line,) = full_disk_lines(tmp_path / "run", logs)
    assert f"no space is left in {logs}" in line
    assert "--logs" in line


@pytest.mark.parametrize("named", [True, False])
def test_run_directory_that_executes_nothing_is_named(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [*os.statvfs(tmp_path)]
    fields[8] = os.ST_NOEXEC if named else 0
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    lines = [*noexec_lines(tmp_path / "run")]
    assert [f"{tmp_path} is mounted noexec" in line for line in lines] == [True] * named

import os
import shutil
from pathlib import Path

import pytest

from dlctl.cli.embedded.disk_space import full_disk_lines


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

"""The end of a process that has detached itself, before it was ready and without a message."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, pathlib, signal, sys
from dlctl.cli.embedded.detached import detach
detach(pathlib.Path(sys.argv[1]))
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        pytest.param("os._exit(143)", 143, "dlctl: ended by SIGTERM", id="ended"),
        pytest.param("os.kill(os.getpid(), 9)", 137, "dlctl: ended by SIGKILL", id="killed"),
        pytest.param("os._exit(1)", 1, "could not say why in {log}: is its disk full?", id="full"),
    ],
)
def test_end_without_a_message_is_explained(
    tmp_path: Path, end: str, code: int, message: str
) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", SCRIPT.format(end=end), str(log)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == code
    assert message.format(log=log) in done.stderr
    assert not log.exists()

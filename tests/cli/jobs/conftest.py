"""An embedded cluster in a process of its own, for commands that run in this one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster")
    path = folder / "kubeconfig"
    command = [sys.executable, "-m", "dlctl", "up", "--network", "host", "--kubeconfig", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)}
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Ctrl-C" in line:
                break
        yield path
        process.terminate()
        process.stdout.read()

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Dlctl


def test_cluster_is_up_until_an_interrupt(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", "up", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "Ctrl-C" in line:
                break
        config = yaml.safe_load(kubeconfig.read_text())
        mode = kubeconfig.stat().st_mode & 0o777
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    text = "".join(said)
    assert process.returncode == 0, err
    assert f"export KUBECONFIG={kubeconfig}" in text
    assert config["clusters"][0]["cluster"]["server"] in text
    assert "network     " in text
    assert mode == 0o600
    assert list(tmp_path.iterdir()) == []


def test_foreign_kubeconfig_is_not_replaced(dlctl: Dlctl, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("current-context: production\n")
    done = dlctl("up", "--kubeconfig", str(kubeconfig))
    assert done.code == 2
    assert "remove it or choose another path" in done.err
    assert kubeconfig.read_text() == "current-context: production\n"


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_port_out_of_range_exits_2(dlctl: Dlctl, port: str) -> None:
    done = dlctl("up", "--port", port)
    assert done.code == 2
    assert "--port" in done.err

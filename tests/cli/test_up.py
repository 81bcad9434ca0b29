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


@pytest.mark.slow
def test_cluster_in_the_background_is_found_by_its_name(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    def dlctl(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "dlctl", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=20, check=False
        )

    kubeconfig = tmp_path / "dlctl" / "clusters" / "one" / "kubeconfig"
    up = dlctl("up", "--detach", "--name", "one", "--network", "host")
    try:
        assert up.returncode == 0, up.stderr
        assert f"export KUBECONFIG={kubeconfig}" in up.stdout
        assert "until `dlctl down --name one`" in up.stdout
        assert dlctl("get", "--kubeconfig", str(kubeconfig)).returncode == 0
        again = dlctl("up", "--detach", "--name", "one")
        assert again.returncode == 2
        assert "a cluster named one is running" in again.stderr
        assert "those that run: one" in dlctl("down").stderr
    finally:
        down = dlctl("down", "--name", "one")
    assert (down.returncode, down.stdout) == (0, "cluster one has ended\n")
    assert not kubeconfig.exists()
    assert dlctl("down", "--name", "one").returncode == 1


@pytest.mark.slow
def test_cluster_that_cannot_start_in_the_background_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "dlctl", "up", "-d", "--network", "host"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(tmp_path / "file")],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert "remove it or choose another path" in done.stderr

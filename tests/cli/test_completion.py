"""What a shell gets, by the protocol of argcomplete: it runs dlctl and reads descriptor 8."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.completions import completed
from tests.support.command_line import Dlctl

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dlctl su", ["suspend"]),
        ("dlctl logs --ti", ["--timestamps"]),
        ("dlctl up --network ", ["auto", "isolated", "host"]),
        ("dlctl completion f", ["fish"]),
        ("dlctl new m", ["mpi-ssh", "mpi", "mxnet"]),
        ("dlctl run --kind py", ["pytorch"]),
        ("dlctl nothing", []),
    ],
)
def test_commands_flags_and_values_are_completed(line: str, words: list[str]) -> None:
    assert completed(line) == words


def test_unreachable_cluster_has_no_names(tmp_path: Path) -> None:
    assert completed("dlctl why a", KUBECONFIG=str(tmp_path / "missing")) == []


def test_completion_leaves_no_file_behind(tmp_path: Path) -> None:
    """The reader of kubeconfigs writes a cluster's CA to a temporary file."""
    authority = base64.b64encode(b"no certificate").decode()
    kubeconfig, temporary = tmp_path / "config", tmp_path / "tmp"
    temporary.mkdir()
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": authority}
    config = {
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": "secret"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    kubeconfig.write_text(json.dumps(config))
    assert completed("dlctl why a", KUBECONFIG=str(kubeconfig), TMPDIR=str(temporary)) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_code_for_a_shell_is_valid(dlctl: Dlctl, shell: str, tmp_path: Path) -> None:
    done = dlctl("completion", shell)
    assert done.code == 0
    assert "dlctl" in done.out
    if shutil.which(shell):
        code = tmp_path / "code"
        code.write_text(done.out)
        subprocess.run([shell, "-n", str(code)], check=True)


def test_unknown_shell_exits_2(dlctl: Dlctl) -> None:
    assert dlctl("completion", "tcsh").code == 2

"""Machines on which the embedded cluster could not run, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

_CHECKED = """
import resource
from dlctl.cli.embedded.machine_limits import allow_open_files, check_loopback
from dlctl.errors import ConfigError

try:
    check_loopback()
    allow_open_files()
    print(resource.getrlimit(resource.RLIMIT_NOFILE))
except ConfigError as error:
    print(error)
"""


def checked(shell: str, *namespaces: str) -> str:
    """Return what the checks print after these commands."""
    script = f'{shell}; exec "$@"'
    command = [*namespaces, "sh", "-c", script, "sh", sys.executable, "-c", _CHECKED]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        pytest.param(
            ":",
            "the embedded cluster needs 127.0.0.1 (Network is unreachable): "
            "run `ip link set lo up`",
            id="loopback is down",
        ),
        pytest.param(
            "ip link set lo up; ip addr del 127.0.0.1/8 dev lo",
            "the embedded cluster needs 127.0.0.1 (Cannot assign requested address): "
            "run `ip addr add 127.0.0.1/8 dev lo`",
            id="loopback has IPv6 alone",
        ),
    ],
)
def test_machine_without_a_loopback_address_is_rejected(shell: str, message: str) -> None:
    assert checked(shell, "unshare", "--user", "--map-root-user", "--net") == message


@pytest.mark.parametrize(
    ("shell", "limits"),
    [("ulimit -Sn 64; ulimit -Hn 300", (300, 300)), ("ulimit -Sn 256; ulimit -Hn 256", (256, 256))],
)
def test_limit_of_open_files_is_raised(shell: str, limits: tuple[int, int]) -> None:
    assert checked(shell) == str(limits)


def test_too_few_open_files_are_rejected() -> None:
    said = checked("ulimit -n 64")
    assert said.startswith("this process may open 64 files, and the embedded cluster needs 256")
    assert said.endswith("raise the hard limit (`ulimit -Hn`)")


def test_cluster_checks_the_machine_before_it_starts(tmp_path: Path) -> None:
    command = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-m", "dlctl", "up"]
    done = subprocess.run(
        [*command, "--kubeconfig", tmp_path / "config"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dlctl: this process may open 64 files")

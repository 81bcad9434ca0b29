"""SSH keys, checked by OpenSSH."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from dlctl.frameworks.horovod.ssh_keys import key_pair, secret_data

needs_openssh = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None or shutil.which("ssh") is None, reason="no OpenSSH"
)


@needs_openssh
def test_openssh_accepts_the_key_pair(tmp_path: Path) -> None:
    private, public = key_pair("ml/et")
    file = tmp_path / "id_rsa"
    file.write_bytes(private)
    file.chmod(0o600)
    told = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", file], capture_output=True, check=True, timeout=10
    )
    assert told.stdout.split()[:2] == public.split()[:2]
    assert public.startswith(b"ssh-ed25519 ")
    assert public.endswith(b" ml/et\n")


@needs_openssh
def test_openssh_understands_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(base64.b64decode(secret_data("c")["config"]))
    told = subprocess.run(
        ["ssh", "-G", "-F", file, "et-worker-0"],
        capture_output=True,
        check=True,
        text=True,
        timeout=10,
    ).stdout.splitlines()
    assert {
        "stricthostkeychecking false",
        "userknownhostsfile /dev/null",
        "loglevel ERROR",
        "connecttimeout 10",
    } <= set(told)


def test_each_job_has_its_own_keys() -> None:
    assert key_pair("a")[0] != key_pair("a")[0]

"""SSH keys, checked by OpenSSH."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from dlctl.frameworks.horovod.ssh_access import secret_data
from dlctl.frameworks.ssh_keys import ed25519_pair, p521_pair

needs_openssh = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None or shutil.which("ssh") is None, reason="no OpenSSH"
)


@needs_openssh
@pytest.mark.parametrize(
    ("pair", "algorithm", "comment"),
    [
        pytest.param(ed25519_pair("ml/et"), b"ssh-ed25519 ", b" ml/et\n", id="Ed25519"),
        pytest.param(p521_pair(), b"ecdsa-sha2-nistp521 ", b"\n", id="P-521"),
    ],
)
def test_openssh_accepts_the_key_pair(
    pair: tuple[bytes, bytes], algorithm: bytes, comment: bytes, tmp_path: Path
) -> None:
    private, public = pair
    file = tmp_path / "id_rsa"
    file.write_bytes(private)
    file.chmod(0o600)
    told = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", file], capture_output=True, check=True, timeout=10
    )
    assert told.stdout.split()[:2] == public.split()[:2]
    assert public.startswith(algorithm)
    assert public.endswith(comment)


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
    assert ed25519_pair("a")[0] != ed25519_pair("a")[0]
    assert p521_pair()[0] != p521_pair()[0]

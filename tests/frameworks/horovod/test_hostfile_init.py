"""The launcher's init script, run by a shell with fake programs."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from dlctl.frameworks.horovod.hostfile_init import MAX_WAIT_S, init_script

pytestmark = pytest.mark.slow

HOSTS = "et-worker-0:1\net-worker-1:1\n"


def run(
    tmp_path: Path,
    programs: Mapping[str, str],
    *,
    by_ssh: bool = True,
    limit_s: float = 9,
    server: str = "10.96.0.1",
) -> str:
    """Run the script with these additional programs, and return its output."""
    for folder in ("mpi", "edl", "job", "bin"):
        (tmp_path / folder).mkdir()
    for name, text in (
        ("hostfile", HOSTS),
        ("deepspeed-hostfile", "d\n"),
        ("discover_hosts.sh", ""),
    ):
        (tmp_path / "mpi" / name).write_text(text)
    for name in ("cp", "chmod", "sleep", "cat", "mkdir"):
        found = next(p for p in (Path("/bin") / name, Path("/usr/bin") / name) if p.exists())
        (tmp_path / "bin" / name).symlink_to(found)
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    command = (
        init_script(uses_ssh=by_ssh)
        .replace("/etc/", f"{tmp_path}/")
        .replace(" /job/", f" {tmp_path}/job/")
    )
    command = command.replace(f"sleep {MAX_WAIT_S}", f"sleep {limit_s}")
    begun = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        env={
            "PATH": str(tmp_path / "bin"),
            "SEEN": str(tmp_path),
            "KUBERNETES_SERVICE_HOST": server,
        },
        check=True,
        timeout=9,
    )
    assert time.monotonic() - begun < 5
    assert done.stderr == ""
    return done.stdout


def test_files_are_copied_to_a_writable_directory(tmp_path: Path) -> None:
    assert run(tmp_path, {}) == ""
    assert (tmp_path / "edl/hostfile").read_text() == HOSTS
    assert (tmp_path / "job/hostfile").read_text() == "d\n"
    modes = {p.name: oct(p.stat().st_mode & 0o777) for p in (tmp_path / "edl").iterdir()}
    assert modes == {"hostfile": "0o644", "discover_hosts.sh": "0o755"}


def test_init_container_waits_until_each_host_is_reachable(tmp_path: Path) -> None:
    # Each host is reachable at the second attempt.
    asked = """echo "$@" >>"$SEEN/asked"; mkdir "$SEEN/$4" 2>/dev/null && exit 1; exit 0"""
    told = run(tmp_path, {"nc": asked})
    assert told == "waiting for et-worker-0\nwaiting for et-worker-1\n"
    assert (tmp_path / "asked").read_text().splitlines() == [
        *["-z -w 1 et-worker-0 22"] * 2,
        *["-z -w 1 et-worker-1 22"] * 2,
    ]


@pytest.mark.parametrize("program", ["getent", "nslookup"])
@pytest.mark.parametrize("by_ssh", [True, False])
def test_without_nc_a_resolvable_name_is_enough(program: str, by_ssh: bool, tmp_path: Path) -> None:
    asked = """echo "$@" >>"$SEEN/asked"; [ -d "$SEEN/once" ] || { mkdir "$SEEN/once"; exit 2; }"""
    told = run(tmp_path, {program: asked}, by_ssh=by_ssh)
    assert told == "waiting for et-worker-0\n"
    words = (tmp_path / "asked").read_text().split()
    assert [word for word in words if word != "hosts"] == ["et-worker-0"] * 2 + ["et-worker-1"]


def test_kubectl_needs_no_port(tmp_path: Path) -> None:
    assert run(tmp_path, {"nc": "exit 1", "getent": "exit 0"}, by_ssh=False) == ""


def test_launcher_starts_after_the_timeout_with_an_unreachable_host(tmp_path: Path) -> None:
    told = run(tmp_path, {"nc": "exit 1"}, limit_s=0.5)
    assert told == "waiting for et-worker-0\nno longer waiting\n"


def test_launcher_does_not_wait_for_names_that_resolve_nowhere(tmp_path: Path) -> None:
    assert run(tmp_path, {"nc": "exit 1"}, server="127.0.0.1") == ""
    assert (tmp_path / "edl/hostfile").read_text() == HOSTS


def test_missing_file_fails_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "nowhere").mkdir()
    command = init_script(uses_ssh=True).replace("/etc/", f"{tmp_path}/nowhere/")
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=9)
    assert done.returncode == 1

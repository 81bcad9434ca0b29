"""The launcher's scripts, run by a shell with fake programs."""

import subprocess
import time
from pathlib import Path

import pytest

from dlctl.frameworks.horovod.config_files import (
    COPY_PATHS,
    DISCOVER_HOSTS,
    HOSTFILE,
    KUBEXEC,
    config_files,
)

pytestmark = pytest.mark.slow


def run(script: str, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "-c", script, "script", *args],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ("et-worker-0:1\net-worker-10:1\n", ["et-worker-0:1", "et-worker-10:1"]),
        ("", []),
        # As in et-operator.
        ("a:1\n\n", ["a:1"]),
        ("a:1\nb:1", ["a:1", "b:1"]),
    ],
)
def test_discovery_prints_one_host_per_line(listed: str, told: list[str], tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text(listed)
    script = config_files([], slots=1, container="main")[DISCOVER_HOSTS]
    done = run(script.replace(COPY_PATHS[HOSTFILE], str(tmp_path / "hostfile")))
    assert (done.returncode, done.stdout.splitlines()) == (0, told)


def kubexec(tmp_path: Path, kubectl: str, container: str = "main") -> str:
    """Return the remote shell with this program instead of kubectl."""
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\n{kubectl}\n")
    program.chmod(0o755)
    script = config_files([], slots=1, container=container)[KUBEXEC]
    script = script.replace("/opt/kube/kubectl", str(program))
    return script.replace("sleep 10", "sleep 0.05")


def test_remote_shell_runs_a_command_in_the_training_container(tmp_path: Path) -> None:
    script = kubexec(tmp_path, """[ "$1" = exec ] && printf '%s\\n' "$@"; exit 3""")
    done = run(script, "et-worker-0", "orted", "-x 'a  b'", "c")
    assert done.stdout.splitlines() == [
        *("exec", "et-worker-0", "--container", "main"),
        *("--", "/bin/sh", "-c", "orted -x 'a  b' c"),
    ]
    assert done.returncode == 3


def test_remote_shell_accepts_horovods_ssh_arguments(tmp_path: Path) -> None:
    script = kubexec(tmp_path, """printf '%s\\n' "$2" "$8" """)
    options = ("-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no")
    done = run(script, *options, "me@et-worker-1", "-p", "22", "bash -c 'a -n'")
    assert done.stdout.splitlines() == ["et-worker-1", "bash -c 'a -n'"]


def test_container_name_is_quoted_in_scripts(tmp_path: Path) -> None:
    script = kubexec(tmp_path, """printf '%s\\n' "$4" """, container="main; touch /x")
    assert run(script, "et-worker-0", "true").stdout == "main; touch /x\n"
    assert "--container 'main; touch /x' --" in script


@pytest.mark.parametrize("after", ["", "uid-2 Running", "uid-1 Failed"])
def test_remote_shell_does_not_wait_for_a_pod_that_is_gone(after: str, tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    script = kubexec(
        tmp_path,
        f"""case $1 in
        exec) exec sleep 30 ;;
        get) echo x >>{looks}
          if [ $(wc -l <{looks}) -lt 3 ]; then echo 'uid-1 Running'; else echo '{after}'; fi
        esac""",
    )
    begun = time.monotonic()
    assert run(script, "et-worker-0", "train").returncode == 143
    assert time.monotonic() - begun < 5


def test_remote_shell_survives_an_unresponsive_server(tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    looks.touch()
    # The program runs until some looks have failed, or until nobody looks any more.
    script = kubexec(
        tmp_path,
        f"""case $1 in
        exec) while [ $(wc -l <{looks}) -lt 8 ]; do kill -0 $PPID || exit; sleep 0.02; done ;;
        get) echo x >>{looks}; [ $(wc -l <{looks}) -lt 3 ] && echo 'uid-1 Running' || exit 1
        esac""",
    )
    assert run(script, "et-worker-0", "train").returncode == 0
    assert len(looks.read_text().splitlines()) >= 8


def test_terminated_remote_shell_terminates_its_program(tmp_path: Path) -> None:
    looked = tmp_path / "looked"
    script = kubexec(
        tmp_path,
        f"""case $1 in
        exec) until [ -e {looked} ]; do sleep 0.02; done; kill $PPID; exec sleep 30 ;;
        get) touch {looked}
        esac""",
    )
    begun = time.monotonic()
    # The output ends when no process holds it open.
    assert run(script, "et-worker-0", "train").returncode == 143
    assert time.monotonic() - begun < 5

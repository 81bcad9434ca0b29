import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
import yaml

from dlctl.api.meta import Resource
from dlctl.kube.client import Client
from dlctl.kube.config import load
from tests.support.command_line import Dlctl, script_job

MX_JOBS: Final = Resource("kubeflow.org", "v1alpha1", "mxjobs", "MXJob")
# Takes a moment to save its work on SIGTERM.
_SAVES = """
    import os, pathlib, signal, sys, time
    def save(*_):
        time.sleep(0.3)
        pathlib.Path("{folder}", "saved-" + os.environ["HOSTNAME"]).touch()
        sys.exit()
    signal.signal(signal.SIGTERM, save)
    pathlib.Path("{folder}", "started-" + os.environ["HOSTNAME"]).touch()
    time.sleep(60)
"""
# The first process gets the signal before it waits for the other one, which writes the log.
_SIGNALLED = """
import os, pathlib, sys, time
from dlctl.__main__ import main

log, number = pathlib.Path(sys.argv[1]), int(sys.argv[2])
fork = os.fork

def fork_and_signal():
    if child := fork():
        while not log.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)
    return child

os.fork = fork_and_signal
sys.argv[1:] = ["up", "-d", "--network", "host"]
main()
"""
# A second signal closes the lock before the programs of pods have ended.
_FREES_ITS_NAME_FIRST = """
import signal, time
from dlctl.cli.embedded.named_clusters import NamedCluster
from dlctl.local.file_lock import write_holder

def end(*_):
    claim.__exit__(None, None, None)
    time.sleep(1.5)
    raise SystemExit

claim = NamedCluster.of("default").claimed()
write_holder(claim.__enter__())
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(60)
"""


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
        _, err = process.communicate()
    text = "".join(said)
    assert process.returncode == 0, err
    # Nothing follows the way to use it.
    assert err == "ending\n"
    assert f"export KUBECONFIG={kubeconfig}" in text
    assert config["clusters"][0]["cluster"]["server"] in text
    assert "network     " in text
    assert mode == 0o600
    assert list(tmp_path.iterdir()) == []


def test_programs_save_their_work_when_the_cluster_ends(tmp_path: Path) -> None:
    folder, kubeconfig = tmp_path / "saved", tmp_path / "kubeconfig"
    folder.mkdir()
    job = script_job(_SAVES.format(folder=folder))

    async def create() -> None:
        async with Client(await load(str(kubeconfig))) as client:
            await client.create(MX_JOBS, "default", job)

    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", "up", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("Ctrl-C" in line for line in process.stdout)
        asyncio.run(create())
        deadline = time.monotonic() + 20
        while len([*folder.glob("started-linear-worker-*")]) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 0, err
    assert "the programs have up to 30 s to end; Ctrl-C again ends them at once" in err
    assert len([*folder.glob("saved-linear-worker-*")]) == 2


def test_link_to_itself_is_not_replaced_by_a_kubeconfig(dlctl: Dlctl, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.symlink_to(kubeconfig)
    done = dlctl("up", "--kubeconfig", str(kubeconfig))
    assert (done.code, kubeconfig.is_symlink()) == (2, True)
    assert "Too many levels of symbolic links" in done.err


def test_foreign_kubeconfig_is_not_replaced(dlctl: Dlctl, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("current-context: production\n")
    done = dlctl("up", "--kubeconfig", str(kubeconfig))
    assert done.code == 2
    assert "remove it or choose another path" in done.err
    assert kubeconfig.read_text() == "current-context: production\n"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        pytest.param("--kubeconfig", "file/below: its directory does not exist", id="kubeconfig"),
        pytest.param("--data", "file/below: Not a directory", id="data"),
        pytest.param("--name", "XDG_STATE_HOME names another place", id="state"),
    ],
)
def test_place_that_cannot_be_written_exits_2(
    dlctl: Dlctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, message: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    place = ["one", "--detach"] if option == "--name" else [str(file / "below")]
    done = dlctl("up", option, *place, "--network", "host")
    assert done.code == 2
    assert message in done.err


def test_name_without_detaching_exits_2(dlctl: Dlctl) -> None:
    done = dlctl("up", "--name", "mine")
    assert (done.code, done.out) == (2, "")
    assert done.err == "dlctl: --name mine: only a cluster with --detach has a name\n"


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
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

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


@pytest.mark.parametrize(
    ("name", "message"), [("x" * 300, "File name too long"), (".", "Is a directory")]
)
def test_kubeconfig_that_cannot_be_looked_at_exits_2(dlctl: Dlctl, name: str, message: str) -> None:
    done = dlctl("up", "--kubeconfig", name)
    assert (done.code, done.err) == (2, f"dlctl: --kubeconfig {name}: {message}\n")


def test_cluster_has_ended_once_its_process_has(
    dlctl: Dlctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    command = [sys.executable, "-c", _FREES_ITS_NAME_FIRST]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = dlctl("down")
        assert process.poll() is not None
    assert (done.code, done.out) == (0, "cluster default has ended\n")
    waits = "the programs have up to 30 s to end; `dlctl down` again ends them at once\n"
    assert done.err == waits


@pytest.mark.slow
def test_cluster_that_cannot_start_in_the_background_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "dlctl", "up", "-d", "--network", "host"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(tmp_path / "file")],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "remove it or choose another path" in done.stderr
    assert [*(tmp_path / "dlctl" / "clusters").iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_start_in_the_background(tmp_path: Path, number: signal.Signals) -> None:
    clusters = tmp_path / "dlctl" / "clusters"
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", "up", "-d", "--network", "host"],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # Written by the new process: from here on, both have to end.
        while not (clusters / "default" / "log").exists():
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
    assert process.returncode == 128 + number
    assert [*clusters.iterdir()] == []
    assert [*tmp_path.glob("dlctl-*")] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_right_after_the_fork_ends_both_processes(
    tmp_path: Path, number: signal.Signals
) -> None:
    clusters = tmp_path / "dlctl" / "clusters"
    log = clusters / "default" / "log"
    done = subprocess.run(
        [sys.executable, "-c", _SIGNALLED, str(log), str(int(number))],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 128 + number
    assert [*clusters.iterdir()] == []
    assert [*tmp_path.glob("dlctl-*")] == []

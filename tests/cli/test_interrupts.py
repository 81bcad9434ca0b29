"""Runs that a signal or the time limit ends: what programs may still do, and what is left."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.command_line import Dlctl, Written, script_job

# Saves its work on SIGTERM, which takes a moment.
SAVES = """
    import os, pathlib, signal, sys, time
    def save(*_):
        time.sleep(0.3)
        pathlib.Path("{folder}", os.environ["HOSTNAME"]).write_text("step 100")
        sys.exit("saved")
    signal.signal(signal.SIGTERM, save)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def signals_of_a_terminal() -> Iterator[None]:
    """Let programs start with the default for SIGHUP, also where the tests run below nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def running(
    job: str, tmp_path: Path, *options: str, programs: int = 1
) -> Iterator["subprocess.Popen[str]"]:
    """Start a run, and yield once this many of its programs have said that they are ready."""
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", "run", job, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        ready = (line for line in process.stdout if "| ready" in line)
        try:
            assert len([*itertools.islice(ready, programs)]) == programs
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_programs_save_their_work_after_an_interrupt(
    written: Written, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    job = written(script_job(SAVES.format(folder=folder)))
    with running(job, tmp_path, programs=2) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=15)
    assert process.returncode == 128 + number, err
    assert "the programs have up to 30 s to end; Ctrl-C again ends them at once" in out
    assert "linear worker-0 | saved" in out
    assert "mxjob default/linear has not finished: interrupted after" in err
    assert [each.read_text() for each in folder.glob("linear-worker-*")] == ["step 100"] * 2


def test_programs_save_their_work_after_the_time_limit(
    dlctl: Dlctl, written: Written, tmp_path: Path
) -> None:
    done = dlctl("run", written(script_job(SAVES.format(folder=tmp_path))), "--timeout", "20")
    Path(done.err.split("the controller's log: ")[1].strip()).unlink()
    assert done.code == 1
    assert "linear worker-0 | saved" in done.out
    assert "has not finished: timed out after 20" in done.err


@pytest.mark.parametrize(
    ("network", "number"),
    [
        pytest.param("auto", signal.SIGINT, id="Ctrl-C"),
        pytest.param("host", signal.SIGHUP, id="terminal closed"),
    ],
)
def test_interrupt_exits_with_its_number_and_leaves_no_process(
    written: Written, tmp_path: Path, network: str, number: signal.Signals
) -> None:
    # Ignores SIGTERM, and has a child.
    script = """
        import os, signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "60"])
        print("ready", flush=True)
        time.sleep(60)
    """
    job = script_job(script)
    for spec in job["spec"]["replicaSpecs"]:
        spec["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    with running(written(job), tmp_path, "--network", network) as process:
        before = _descendants(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 128 + number, err
    assert "mxjob default/linear has not finished: interrupted after" in err
    assert before
    assert [pid for pid in before if _lives(pid)] == []
    assert list(tmp_path.glob("dlctl-*")) == []


def test_run_below_nohup_outlives_its_terminal(written: Written, tmp_path: Path) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    script = "import time; print('ready', flush=True); time.sleep(0.5)"
    with running(written(script_job(script)), tmp_path) as process:
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 0, err


def test_second_interrupt_leaves_no_process_and_no_file(written: Written, tmp_path: Path) -> None:
    # Ignores SIGTERM, so that the first interrupt takes a while, and keeps creating files.
    script = """
        import itertools, pathlib, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", flush=True)
        for number in itertools.count():
            pathlib.Path(str(number)).touch()
            time.sleep(0.001)
    """
    with running(written(script_job(script)), tmp_path) as process:
        before = _descendants(process.pid)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        process.communicate(timeout=15)
    assert process.returncode == 130
    assert [pid for pid in before if _lives(pid)] == []
    assert list(tmp_path.glob("dlctl-*")) == []


def test_interrupt_after_the_end_keeps_the_outcome(written: Written, tmp_path: Path) -> None:
    with running(written(script_job("print('ready')")), tmp_path) as process:
        assert process.stdout is not None
        assert any("succeeded in" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 0, err
    assert "interrupted" not in err
    assert "ClientSession" not in err
    assert list(tmp_path.glob("dlctl-*")) == []


def test_second_interrupt_logs_nothing(tmp_path: Path) -> None:
    # Its log closes while a child still runs and a thread still logs.
    script = """
import logging, os, signal, subprocess, sys, threading
from dlctl.cli.interrupts import run_until_signalled
logging.basicConfig(filename=sys.argv[1], level=logging.INFO)

def log():
    while True:
        logging.info("lives")

async def main(interrupts):
    subprocess.Popen(["sleep", "0.2"])
    threading.Thread(target=log, daemon=True).start()
    interrupts.catch(signal.SIGINT)
    # A third one comes while the second is dealt with.
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    interrupts.catch(signal.SIGINT)

run_until_signalled(main)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=15)
    assert done.returncode == 130
    assert done.stderr == ""


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    # Processes and threads may end meanwhile.
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                children += map(int, (task / "children").read_text().split())
    return children + [found for child in children for found in _descendants(child)]


def _lives(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(") ")[2][0] != "Z"

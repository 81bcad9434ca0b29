"""What the real clusters of the tests consist of."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from e2e.cluster import addresses
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Processes

# As of a program that is killed and frees much memory, whose ports are still taken.
FIRST_THREAD_ENDS: Final = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_program_counts_as_running_from_the_moment_of_its_start(tmp_path: Path) -> None:
    program = Path(sys.executable)
    processes = Processes(tmp_path, program.parent)
    try:
        for number in range(20):
            processes.start(program.name, "-c", "import time; time.sleep(60)", name=f"{number}")
            assert f"{number}" in processes.running()
    finally:
        processes.stop()
    assert processes.running() == {}


def test_process_whose_first_thread_has_ended_counts_as_running(tmp_path: Path) -> None:
    program = Path(sys.executable)
    processes = Processes(tmp_path, program.parent)
    processes.start(program.name, "-c", FIRST_THREAD_ENDS, name="serves")
    pid = processes.running()["serves"]
    stat = Path(f"/proc/{pid}/stat")
    try:
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert processes.running() == {"serves": pid}
    finally:
        processes.stop()
    assert processes.running() == {}


def test_process_with_a_reused_pid_does_not_count(
    tmp_path: Path,
) -> None:
    program = Path(sys.executable)
    processes = Processes(tmp_path, program.parent)
    processes.start(program.name, "-c", "import time; time.sleep(60)", name="brief")
    ended = processes.running()["brief"]
    processes.kill("brief")
    with subprocess.Popen([program, "-c", "import time; time.sleep(60)"]) as other:
        listed = tmp_path / "processes"
        listed.write_text(listed.read_text().replace(f" {ended},", f" {other.pid},"))
        try:
            assert processes.running() == {}
        finally:
            other.kill()


def test_ports_are_different_ones_that_nobody_has() -> None:
    ports = addresses.free_ports(3)
    assert len(set(ports)) == 3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))
        assert sorted(addresses.free_ports(2, ports)) == sorted(ports[1:])
        with pytest.raises(ClusterError, match="fewer than 3 ports are free"):
            addresses.free_ports(3, ports)

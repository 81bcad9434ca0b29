"""What the real clusters of the tests consist of."""

import subprocess
import sys
from pathlib import Path

from e2e.cluster.processes import Processes


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

"""The first process of a container, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dlctl.local.node.protocol import StartContainer

# An agent that ends as soon as it has forked.
_ABANDONS = """
import os, socket, sys, time
import msgspec
from dlctl.local.node.agent import container_init
from dlctl.local.node.protocol import StartContainer

agent_pid = os.getpid()
if os.fork() == 0:
    while os.getppid() == agent_pid:
        time.sleep(0.01)
    container_init.run(
        msgspec.json.decode(sys.argv[1], type=StartContainer),
        agent_pid=agent_pid,
        netns_fd=None,
        isolated=False,
        report_fd=os.open(os.devnull, os.O_WRONLY),
        requests=socket.socketpair()[0],
    )
"""


@pytest.mark.slow
def test_container_whose_agent_has_ended_does_not_start(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    start = StartContainer(
        id=1,
        container="main",
        pod="pod",
        argv=["touch", str(ran)],
        env={"PATH": "/usr/bin:/bin"},
        cwd=str(tmp_path),
        log_path=str(tmp_path / "log"),
    )
    # Its output ends with the last of the processes.
    subprocess.run(
        [sys.executable, "-c", _ABANDONS, msgspec.json.encode(start).decode()],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert not ran.exists()

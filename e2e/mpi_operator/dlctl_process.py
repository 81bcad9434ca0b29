"""dlctl as a process beside a cluster, like :mod:`e2e.mpi_operator.peer`."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from e2e.cluster.addresses import free_port

_READY_S: Final = 60.0
_POLL_S: Final = 0.1
_STOP_S: Final = 20.0


@contextmanager
def running(folder: Path, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it against the cluster of ``KUBECONFIG``; its log is in the folder."""
    log = folder / f"dlctl-{time.time_ns()}.log"
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "dlctl", "controller", f"--bind-address={address}", *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait(process, f"http://{address}/readyz", log)
            yield process
        finally:
            process.terminate()
            process.wait(_STOP_S)


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(url, timeout=5):
                return
        time.sleep(_POLL_S)
    raise RuntimeError(f"dlctl does not work:\n{log.read_text()[-2000:]}")

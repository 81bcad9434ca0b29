"""An operator in its own process, and how dlctl is started as one."""

import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from bench.controller_process import Controller, controller
from e2e.cluster.addresses import free_port

_READY_S: Final = 60.0
_POLL_S: Final = 0.02


@attrs.frozen(eq=False)
class Operator:
    """A running operator."""

    name: str
    pid: int
    # Seconds since the epoch.
    started_at: float
    # Of dlctl alone: its address, and its event loop.
    url: str = ""
    controller: Controller | None = None


@attrs.frozen
class Program:
    """An operator that can be started."""

    name: str
    run: Callable[..., AbstractContextManager[Operator]]

    @property
    def is_dlctl(self) -> bool:
        return self.name == "dlctl"


def dlctl(folder: Path, flags: Sequence[str]) -> Program:
    return Program("dlctl", partial(_run_dlctl, folder, flags))


@contextmanager
def _run_dlctl(
    folder: Path,
    flags: Sequence[str],
    *more: str,
    kubeconfig: Path | None = None,
    until_ready: bool = True,
) -> Iterator[Operator]:
    own_folder = Path(tempfile.mkdtemp(prefix="dlctl-", dir=folder))
    address = f"127.0.0.1:{free_port()}"
    arguments = [f"--kubeconfig={kubeconfig or folder / 'admin.kubeconfig'}"]
    arguments += [f"--bind-address={address}", *flags, *more]
    started_at = time.time()
    with controller(own_folder, arguments) as running:
        pid = running.process.pid
        operator = Operator("dlctl", pid, started_at, f"http://{address}", running)
        if until_ready:
            _wait(operator, own_folder / "log")
        yield operator


def _wait(operator: Operator, log: Path) -> None:
    assert operator.controller
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if not operator.controller.runs:
            raise RuntimeError(f"dlctl has ended:\n{log.read_text()[-2000:]}")
        with suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(f"{operator.url}/readyz", timeout=5):
                # Its start is over, so that it is not measured.
                time.sleep(1.0)
                return
        time.sleep(_POLL_S)
    raise RuntimeError(f"dlctl is not ready:\n{log.read_text()[-2000:]}")

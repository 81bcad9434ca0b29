"""The operators that are timed, each in its own process."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import attrs

_SETTLED_S: Final = 5.0
_STOP_S: Final = 20.0


@attrs.frozen(eq=False)
class Operator:
    """A running operator."""

    name: str
    pid: int


@contextmanager
def _running(name: str, folder: Path, command: Sequence[str]) -> Iterator[Operator]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            # Both have synced and lead by then.
            time.sleep(_SETTLED_S)
            if process.poll() is not None:
                raise RuntimeError(f"{name} has ended: see {folder}/{name}.log")
            yield Operator(name, process.pid)
        finally:
            process.terminate()
            process.wait(_STOP_S)


def dlctl(folder: Path, flags: Sequence[str]) -> AbstractContextManager[Operator]:
    kubeconfig = folder / "admin.kubeconfig"
    command = [sys.executable, "-m", "dlctl", "controller", f"--kubeconfig={kubeconfig}"]
    command += ["--bind-address=127.0.0.1:0", *flags]
    return _running("dlctl", folder, command)


def peer(folder: Path, program: Path) -> AbstractContextManager[Operator]:
    """Run training-operator with its limits lifted."""
    command = [str(program), "--enable-scheme=PyTorchJob", "--controller-threads=8"]
    command += ["--kube-api-qps=2000", "--kube-api-burst=4000"]
    command += ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    command += [f"--kubeconfig={folder / 'admin.kubeconfig'}"]
    return _running("training-operator", folder, command)

"""mpi-operator as it is installed, and with its client's and its queue's limits lifted."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.cluster.operators import Operator, Program
from bench.cluster.scenario import MPI_OPERATOR
from e2e.mpi_operator import peer


def mpi_operators(folder: Path) -> list[Program]:
    settings = {MPI_OPERATOR: (), f"{MPI_OPERATOR}, limits lifted": peer.UNLIMITED}
    return [Program(name, partial(_run, folder, name, flags)) for name, flags in settings.items()]


@contextmanager
def _run(folder: Path, name: str, flags: Sequence[str]) -> Iterator[Operator]:
    started_at = time.time()
    with peer.running(folder, *flags) as process:
        # Its start is over, so that it is not measured.
        time.sleep(1.0)
        yield Operator(name, process.pid, started_at)

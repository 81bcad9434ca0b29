"""``dlctl controller`` in its own process, with a sampler in its event loop.

``python -m bench.controller_process FILE ARGUMENTS`` runs the real program. Its own metric of loop
lag samples twice a second, too seldom for a high percentile.
"""

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

import attrs

PERIOD_S: Final = 0.01
# Shorter delays are left out.
NOTED_S: Final = 0.005
_STOP_S: Final = 20.0
# The first line of the file: the sampler runs.
_STARTED: Final = "started"


@attrs.define(eq=False)
class Sampler:
    """Writes down each late wake-up: when it was due, how late it came, and the CPU time used.

    The difference of the two is spent waiting for a core.
    """

    file: TextIO
    _due: float = 0.0
    _cpu_s: float = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        print(_STARTED, file=self.file, flush=True)
        self._schedule(loop)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + PERIOD_S
        self._cpu_s = time.thread_time()
        loop.call_at(self._due, self._sample, loop)

    def _sample(self, loop: asyncio.AbstractEventLoop) -> None:
        late_s = loop.time() - self._due
        if late_s > NOTED_S:
            own_s = min(late_s, time.thread_time() - self._cpu_s)
            print(f"{self._due:.4f} {late_s:.4f} {own_s:.4f}", file=self.file, flush=True)
        self._schedule(loop)


class _Policy(asyncio.DefaultEventLoopPolicy):
    """Samples the first loop, which does the work; the second is the elector's."""

    sampler: Sampler | None = None

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        if self.sampler is not None:
            loop.call_soon(self.sampler.start, loop)
            self.sampler = None
        return loop


@attrs.frozen
class LateWakeup:
    """One wake-up that came late; seconds of the machine's monotonic clock."""

    due: float
    wall_s: float
    own_s: float


def quantile_s(late: Iterable[float], lasted_s: float, share: float) -> float:
    """Return a quantile of the delay that a sleeper due at a random moment would have seen.

    One delay of 1 s holds up all sleepers due in that second, so it counts once for each period.
    """
    waits = [wait for whole in late for wait in _waits(whole)]
    rank = int(lasted_s / PERIOD_S * (1 - share))
    return sorted(waits, reverse=True)[rank] if rank < len(waits) else NOTED_S


def _waits(late_s: float) -> Iterator[float]:
    while late_s > NOTED_S:
        yield late_s
        late_s -= PERIOD_S


@attrs.define(eq=False)
class Controller:
    """The controller's process, seen from outside."""

    process: "subprocess.Popen[bytes]"
    samples: Path

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def late(self, since: float) -> Sequence[LateWakeup]:
        """Return the late wake-ups since a time; fails if there is no sampler to notice them."""
        found = []
        first, *lines = self.samples.read_text().splitlines() or [""]
        if first != _STARTED:
            raise RuntimeError("the event loop has no sampler")
        for line in lines:
            due, wall_s, own_s = map(float, line.split())
            if due >= since:
                found.append(LateWakeup(due, wall_s, own_s))
        return found


@contextmanager
def controller(folder: Path, arguments: Sequence[str]) -> Iterator[Controller]:
    """Run a controller for the duration of the block; its log goes to a file in the folder."""
    samples = folder / "samples"
    samples.touch()
    command = [sys.executable, "-m", "bench.controller_process", str(samples), *arguments]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            yield Controller(process, samples)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> int:
    from dlctl.cli import program

    # A runaway must not take the machine with it.
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    with Path(sys.argv[1]).open("a") as file:
        policy = _Policy()
        policy.sampler = Sampler(file)
        asyncio.set_event_loop_policy(policy)  # type: ignore[deprecated]
        return program.run(["controller", *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())

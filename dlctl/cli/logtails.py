"""The output of replicas while they run, and its last lines for when they have failed.

Each start of each container is followed from its first line, since its log may be gone with its
pod by the time that somebody asks.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.meta import PODS
from dlctl.cli.progress import JobProgress, ReplicaProgress, Run
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, UnreachableError

logger = logging.getLogger(__name__)

# The last lines, by job and replica as both print.
Logs = Mapping[tuple[str, str], Sequence[str]]

KEPT_LINES: Final = 50
# A line without end is cut, so that a program that prints dots cannot fill the memory.
_LINE_BYTES: Final = 4096


@attrs.define(eq=False)
class LogTails:
    """Follows the logs of all replicas it is shown, each start once; tasks are of the group."""

    client: Client
    group: asyncio.TaskGroup
    heard: Callable[[JobProgress, str, str], None]
    lines: dict[tuple[str, str], deque[str]] = attrs.field(init=False, factory=dict)
    _followed: dict[Run, "asyncio.Task[None]"] = attrs.field(init=False, factory=dict)

    def follow(self, job: JobProgress) -> None:
        """Begin to follow what has started since the last call."""
        for replica in job.replicas:
            if replica.run and replica.has_log and replica.run not in self._followed:
                self._followed[replica.run] = self.group.create_task(
                    self._tail(job, replica, replica.run), name=f"log of {replica.pod}"
                )

    async def finish(self, within_s: float) -> None:
        """Wait for the logs to end, as they do with their containers; drop what goes on."""
        if self._followed:
            _, late = await asyncio.wait(self._followed.values(), timeout=within_s)
            for task in late:
                task.cancel()

    async def _tail(self, job: JobProgress, replica: ReplicaProgress, run: Run) -> None:
        kept = self.lines.setdefault((str(job), replica.name), deque(maxlen=KEPT_LINES))
        path = PODS.path(job.key.namespace, replica.pod, "log")
        try:
            async with self.client.stream(
                path, {"container": run.container, "follow": "true"}
            ) as chunks:
                async for line in _lines(chunks):
                    kept.append(line)
                    self.heard(job, replica.name, line)
        except (ApiError, UnreachableError) as error:
            # The pod has gone; what it said before is kept.
            logger.debug("log ended early", extra={"pod": replica.pod, "error": str(error)})


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _text(line)
        if len(rest) > _LINE_BYTES:
            yield _text(rest)
            rest = b""
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    """Return the line as it may be shown: a progress bar's last state, no control sequences."""
    last = line.rstrip(b"\r").rpartition(b"\r")[2][:_LINE_BYTES].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in last.expandtabs())

"""The logs of a job's replicas over the API, each run of a program as one stream."""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

import attrs

from dlctl.api.meta import PODS
from dlctl.cli.display.log_lines import LineSplitter, LogPrefixes
from dlctl.cli.display.progress import JobProgress, job_progress
from dlctl.cli.display.replica_progress import ContainerRun, ReplicaProgress
from dlctl.cli.jobs.cluster import TargetCluster
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.kube.errors import NotFoundError, RequestError
from dlctl.tasks import unwrap_exception_groups

_PAUSE_S: Final = 0.5
# A job ends with its chief; its other programs are about to exit.
_FINISH_TIMEOUT_S: Final = 3.0


@attrs.frozen
class PodLogOptions:
    """Which part of each log is shown."""

    container: str = ""
    tail: int | None = None
    since_s: float | None = None
    previous: bool = False
    timestamps: bool = False

    def query(self, container: str) -> dict[str, str]:
        """Return the query of a request for the log of a container."""
        given = {
            "container": self.container or container,
            "tailLines": self.tail,
            "sinceSeconds": math.ceil(self.since_s) if self.since_s else None,
            "previous": "true" if self.previous else None,
            "timestamps": "true" if self.timestamps else None,
        }
        return {name: str(value) for name, value in given.items() if value is not None}


@attrs.define
class LogWriter:
    """Writes to stdout; lines of several replicas begin with their names."""

    # None: one replica, whose output is written as it is.
    prefixes: LogPrefixes | None = None

    async def write(self, replica: str, chunks: AsyncIterator[bytes]) -> None:
        """Write a stream to its end."""
        splitter = LineSplitter()
        async for chunk in chunks:
            if self.prefixes is None:
                _write(chunk)
            else:
                _write(self.prefixes.lines(replica, splitter.feed(chunk)).encode())
        if self.prefixes is not None:
            _write(self.prefixes.lines(replica, splitter.finish()).encode())


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@attrs.define
class LogStreams:
    """Shows the logs of some replicas of a job, now or until it ends."""

    cluster: TargetCluster
    writer: LogWriter
    options: PodLogOptions
    replicas: Collection[str]
    # The replicas whose logs could be read; those of them that had output, or of which an error
    # says why they have none.
    found: set[str] = attrs.field(init=False, factory=set)
    explained: set[str] = attrs.field(init=False, factory=set)
    _progress: JobProgress | None = None

    async def show(self, job: JobSnapshot) -> None:
        """Show what there is, one replica after the other."""
        for replica in await self.selected(job):
            if replica.run and self._has_log(replica):
                query = self.options.query(replica.run.container)
                await self._copy(replica.name, replica.pod, query)

    async def follow(self, job: JobSnapshot) -> None:
        """Show the logs as they grow, those of restarted programs too, until the job has ended."""
        with unwrap_exception_groups():
            async with asyncio.TaskGroup() as group:
                streams: dict[ContainerRun, asyncio.Task[None]] = {}
                current: JobSnapshot | None = job
                while current is not None and not current.is_finished:
                    await self._follow_new(current, group, streams)
                    # A program that starts from now on is shown from its beginning.
                    self.options = attrs.evolve(self.options, tail=None, since_s=None)
                    await asyncio.sleep(_PAUSE_S)
                    current = await self.cluster.refresh(job)
                if current is not None:
                    await self._follow_new(current, group, streams)
                if streams:
                    await asyncio.wait(streams.values(), timeout=_FINISH_TIMEOUT_S)
                for stream in streams.values():
                    stream.cancel()

    async def _follow_new(
        self,
        job: JobSnapshot,
        group: asyncio.TaskGroup,
        streams: "dict[ContainerRun, asyncio.Task[None]]",
    ) -> None:
        for replica in await self.selected(job):
            if replica.run and self._has_log(replica) and replica.run not in streams:
                # Made now, because those that start later are shown from their beginning.
                query = {**self.options.query(replica.run.container), "follow": "true"}
                copy = self._copy(replica.name, replica.pod, query)
                streams[replica.run] = group.create_task(copy, name=f"log of {replica.pod}")

    def _has_log(self, replica: ReplicaProgress) -> bool:
        init_container = replica.init_container
        return replica.has_log or bool(init_container and init_container == self.options.container)

    async def selected(self, job: JobSnapshot) -> list[ReplicaProgress]:
        """Return the state of the shown replicas."""
        before = self._progress or JobProgress(job.kind.singular, job.key)
        pods, now = await self.cluster.pods(job), self.cluster.clock.now()
        self._progress = job_progress(job.kind, job.obj, pods, before, now)
        return [each for each in self._progress.replicas if each.name in self.replicas]

    async def _copy(self, replica: str, pod: str, query: Mapping[str, str]) -> None:
        namespace = self._progress.key.namespace if self._progress else ""
        path = PODS.path(namespace, pod, "log")
        try:
            async with self.cluster.client.stream(path, query) as chunks:
                self.found.add(replica)
                await self.writer.write(replica, self._noting_output(replica, chunks))
        except NotFoundError:
            # Deleted since: its successor is a run of its own.
            return
        except RequestError as error:
            self.explained.add(replica)
            print(f"dlctl: {replica} (pod {pod}): {error}", file=sys.stderr)

    async def _noting_output(
        self, replica: str, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        # Noted with the first chunk: a program that runs on after its job is never read to its end.
        async for chunk in chunks:
            self.explained.add(replica)
            yield chunk

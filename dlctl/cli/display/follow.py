"""Follow jobs until they finish: watch them and their pods, and keep a view up to date.

Read-only: objects come through the API, as with kubectl, and logs from the embedded node.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from dlctl.api.meta import BATCH_JOBS, MANAGED_BY_SELECTOR, PODS, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod
from dlctl.cli.display.log_selection import LogSelection
from dlctl.cli.display.log_tails import LogTails, last_lines
from dlctl.cli.display.outcome import explaining_runs
from dlctl.cli.display.pod_warnings import PodWarnings
from dlctl.cli.display.progress import JobProgress, job_progress
from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.display.restart_limit import replica_beyond
from dlctl.cli.display.views import ProgressView
from dlctl.cli.manifests.submission import SubmittedJob
from dlctl.clock import Clock, SystemClock
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client

# Shortest and longest time between two frames; a frame shows elapsed seconds.
_PAUSE_S: Final = 0.1
_TICK_S: Final = 0.5
# A job finishes with its chief; its other programs are about to exit by themselves.
_FINISH_TIMEOUT_S: Final = 3.0
_RECENT_LINES: Final = 10


@attrs.frozen
class FollowOptions:
    """Whose logs are shown, and from how many restarts on a job is given up."""

    selection: LogSelection = attrs.field(factory=LogSelection)
    max_restarts: int | None = None


class Follower:
    """Follows jobs until they finish; the last known state stays readable however it ends."""

    def __init__(
        self,
        client: Client,
        run_dir: Path,
        submitted: Sequence[SubmittedJob],
        options: FollowOptions,
        clock: Clock | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._submitted = submitted
        self._options = options
        self._clock = clock or SystemClock()
        self._started = self._clock.now()
        self._changed = asyncio.Event()
        self._stopped = False
        self._pods: Informer[Pod] = Informer(client, PODS, Pod, label_selector=MANAGED_BY_SELECTOR)
        self._jobs: dict[Resource, Informer[Any]] = {
            job.kind.resource: Informer(client, job.kind.resource, job.kind.object_type)
            for job in submitted
        }
        # Jobs of launchers, which own their pods; watched only if a kind has such launchers.
        self._batch_jobs: Informer[BatchJob] = Informer(
            client, BATCH_JOBS, BatchJob, label_selector=MANAGED_BY_SELECTOR
        )
        self._warnings = PodWarnings(client)
        self.progress = [JobProgress(job.kind.singular, job.key) for job in submitted]
        # The lines shown last.
        self.recent: deque[tuple[JobProgress, str, str]] = deque(maxlen=_RECENT_LINES)
        # Pods deleted since the last refresh: their terminations would be missed otherwise.
        self._gone: list[Pod] = []

    def stop(self) -> None:
        """Let :meth:`follow` return once it has read all that the programs have written."""
        self._stopped = True
        self._changed.set()

    async def follow(self, view: ProgressView) -> None:
        """Return once all jobs have finished and their programs have exited or run out of time."""
        self._view = view
        async with asyncio.TaskGroup() as group:
            tails = LogTails(self._run_dir, group, self._options.selection, self._on_log_lines)
            informers: list[Informer[Any]] = [
                self._pods,
                *self._jobs.values(),
                self._warnings.informer,
            ]
            if any(job.kind.creates_launcher_jobs for job in self._submitted):
                informers.append(self._batch_jobs)
            for informer in informers:
                informer.add_handler(self._on_change)
            watches = [group.create_task(informer.run()) for informer in informers]
            await self._watch(tails, lambda job: job.is_finished or self._exceeds_limit(job))
            with suppress(TimeoutError):
                async with asyncio.timeout(_FINISH_TIMEOUT_S):
                    await self._watch(tails, lambda job: job.is_settled or self._exceeds_limit(job))
            self._refresh(tails)
            await tails.finish()
            self._view.show(self.progress, self._clock.now())
            for watch in watches:
                watch.cancel()

    async def _watch(self, tails: LogTails, until: Callable[[JobProgress], bool]) -> None:
        while True:
            self._changed.clear()
            self._refresh(tails)
            if self._stopped or all(map(until, self.progress)):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._changed.wait()
            await asyncio.sleep(_PAUSE_S)

    def _refresh(self, tails: LogTails) -> None:
        for index, job in enumerate(self._submitted):
            before = self.progress[index]
            if not before.is_finished:
                elapsed = self._clock.now() - self._started
                before = attrs.evolve(before, elapsed_s=elapsed.total_seconds())
            self.progress[index] = self._with_warning(self._progress(job, before, tails))
            tails.follow(self.progress[index])
        self._gone.clear()
        self._view.show(self.progress, self._clock.now())

    def _progress(self, job: SubmittedJob, before: JobProgress, tails: LogTails) -> JobProgress:
        informer = self._jobs[job.kind.resource]
        obj = informer.store.get(job.key)
        if obj is None:
            return attrs.evolve(before, is_deleted=informer.has_synced())
        now, uid, namespace = self._clock.now(), obj.metadata.uid, job.key.namespace
        launchers = self._batch_jobs.store.owned_by(namespace, uid)
        owners = [uid, *(one.metadata.uid for one in launchers)]
        pods = [pod for owner in owners for pod in self._pods.store.owned_by(namespace, owner)]
        gone = [pod for pod in self._gone if pod.metadata.controller_uid in owners]
        if gone:
            # Deleted pods first: each may already have a successor of the same name.
            before = job_progress(job.kind, obj, [*pods, *gone], before, now)
            tails.follow(before)
        return job_progress(job.kind, obj, pods, before, now)

    def _with_warning(self, job: JobProgress) -> JobProgress:
        """Return the job with the node's warnings about starts and ends that no status explains."""
        namespace, replicas = job.key.namespace, list[ReplicaProgress]()
        for replica in job.replicas:
            ended_by = self._warnings.ended_by(namespace, replica.pod) or replica.ended_by
            waiting = replica.waiting_message
            if not (replica.started or replica.is_settled or waiting):
                waiting = self._warnings.last_warning(namespace, replica.pod)
            replicas.append(attrs.evolve(replica, ended_by=ended_by, waiting_message=waiting))
        return attrs.evolve(job, replicas=tuple(replicas))

    def last_lines(self, job: JobProgress, replica: str, count: int) -> list[str]:
        """Return the last lines of a replica, of the first explaining run that has written any."""
        runs = explaining_runs(job, replica)
        return next(filter(None, (last_lines(self._run_dir, run, count) for run in runs)), [])

    def _exceeds_limit(self, job: JobProgress) -> bool:
        return replica_beyond(job, self._options.max_restarts) is not None

    def _on_change(self, change: Change[Any]) -> None:
        if change.new is None and isinstance(change.old, Pod):
            self._gone.append(change.old)
        self._changed.set()

    async def _on_log_lines(
        self, job: JobProgress, replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        self._changed.set()
        self.recent.extend((job, replica, line) for line in lines[-_RECENT_LINES:])
        await self._view.log_lines(job, replica, lines, unfinished)

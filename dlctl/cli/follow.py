"""Follow jobs until they finish: watch them and their pods, and keep a view up to date.

Read-only: objects come through the API, as with kubectl, and logs from the embedded node.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from dlctl.api.job import JobObject
from dlctl.api.meta import MANAGED_BY_SELECTOR, PODS, UID, Resource
from dlctl.api.pods import Pod
from dlctl.cli.log_tails import Logs, LogTails
from dlctl.cli.pod_warnings import PodWarnings
from dlctl.cli.progress import JobProgress, job_progress
from dlctl.cli.submission import SubmittedJob
from dlctl.cli.views import ProgressView
from dlctl.clock import Clock, SystemClock
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client

# Shortest and longest time between two frames; a frame shows elapsed seconds.
_PAUSE_S: Final = 0.1
_TICK_S: Final = 0.5
# A job finishes with its chief; its other programs are about to exit by themselves.
_FINISH_TIMEOUT_S: Final = 3.0


class Follower:
    """Follows jobs until they finish; the last known state stays readable however it ends."""

    def __init__(
        self,
        client: Client,
        run_dir: Path,
        submitted: Sequence[SubmittedJob],
        view: ProgressView,
        clock: Clock | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._submitted = submitted
        self._view = view
        self._clock = clock or SystemClock()
        self._changed = asyncio.Event()
        self._pods: Informer[Pod] = Informer(client, PODS, Pod, label_selector=MANAGED_BY_SELECTOR)
        self._jobs: dict[Resource, Informer[JobObject]] = {
            job.kind.resource: Informer(client, job.kind.resource, JobObject) for job in submitted
        }
        self._warnings = PodWarnings(client)
        self.progress = [JobProgress(job.kind.singular, job.key) for job in submitted]
        self.logs: Logs = {}
        # Pods deleted since the last refresh: their terminations would be missed otherwise.
        self._gone: list[Pod] = []

    async def follow(self) -> None:
        """Return once all jobs have finished and their programs have exited or run out of time."""
        async with asyncio.TaskGroup() as group:
            tails = LogTails(self._run_dir, group, self._on_log_line)
            self.logs = tails.lines
            informers: list[Informer[Any]] = [
                self._pods,
                *self._jobs.values(),
                self._warnings.informer,
            ]
            for informer in informers:
                informer.add_handler(self._on_change)
            watches = [group.create_task(informer.run()) for informer in informers]
            await self._watch(tails, lambda job: job.finished)
            with suppress(TimeoutError):
                async with asyncio.timeout(_FINISH_TIMEOUT_S):
                    await self._watch(tails, lambda job: job.settled)
            self._refresh(tails)
            await tails.finish()
            self._view.show(self.progress, self.logs, self._clock.now())
            for watch in watches:
                watch.cancel()

    async def _watch(self, tails: LogTails, until: Callable[[JobProgress], bool]) -> None:
        while True:
            self._changed.clear()
            self._refresh(tails)
            if all(map(until, self.progress)):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._changed.wait()
            await asyncio.sleep(_PAUSE_S)

    def _refresh(self, tails: LogTails) -> None:
        now = self._clock.now()
        for index, (job, before) in enumerate(zip(self._submitted, self.progress, strict=True)):
            self.progress[index] = self._with_warning(self._progress(job, before, tails))
            tails.follow(self.progress[index])
        self._gone.clear()
        self._view.show(self.progress, self.logs, now)

    def _progress(self, job: SubmittedJob, before: JobProgress, tails: LogTails) -> JobProgress:
        informer = self._jobs[job.kind.resource]
        obj = informer.store.get(job.key)
        if obj is None:
            return attrs.evolve(before, deleted=informer.has_synced)
        now, uid = self._clock.now(), obj.metadata.uid
        pods = self._pods.store.owned_by(uid)
        gone = [pod for pod in self._gone if _owner(pod) == uid]
        if gone:
            # Deleted pods first: each may already have a successor of the same name.
            before = job_progress(job.kind, obj, [*pods, *gone], before, now)
            tails.follow(before)
        return job_progress(job.kind, obj, pods, before, now)

    def _with_warning(self, job: JobProgress) -> JobProgress:
        """Return the job with the node's warning about a start that its status does not explain."""
        replicas = tuple(
            attrs.evolve(
                replica, waiting_message=self._warnings.last_warning(job.key.namespace, replica.pod)
            )
            if not (replica.started or replica.settled or replica.waiting_message)
            else replica
            for replica in job.replicas
        )
        return attrs.evolve(job, replicas=replicas)

    def _on_change(self, change: Change[Any]) -> None:
        if change.new is None and isinstance(change.old, Pod):
            self._gone.append(change.old)
        self._changed.set()

    def _on_log_line(self, job: JobProgress, replica: str, line: str) -> None:
        self._view.log_line(job, replica, line)
        self._changed.set()


def _owner(pod: Pod) -> UID | None:
    controller = pod.metadata.controller
    return controller.uid if controller else None

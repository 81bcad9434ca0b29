"""Runs tasks in launchers, one command per task; the caller decides on retries."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs

from dlctl.api.meta import PODS, Object, ObjectKey
from dlctl.clock import Clock
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.reconcilers.membership.exec_tasks import (
    CheckInUse,
    ExecTask,
    LauncherContainer,
    ProbeWorkers,
    RunScript,
    WriteFiles,
)
from dlctl.reconcilers.membership.launcher_shell import LauncherShell

ExecLimiter = Callable[[ObjectKey, ExecTask], AbstractAsyncContextManager[None]]


class LauncherGoneError(DlctlError):
    """The launcher pod no longer exists, even if another pod has its name."""


@attrs.frozen
class ExecRunner:
    """Runs commands in the launchers of all jobs."""

    client: Client
    clock: Clock

    async def exec(self, owner: ObjectKey, task: ExecTask) -> object:
        """Run a task and return its result.

        A :class:`ProbeResult` for a probe, the names of the workers in use for a check, the time at
        which files were written, else None.

        :raises DlctlError: if it has failed.
        """
        await self._check_uid(task.launcher)
        shell = LauncherShell(self.client.execute, task.launcher.pod, task.launcher.container)
        if isinstance(task, ProbeWorkers):
            return await shell.probe_workers(task.workers)
        if isinstance(task, CheckInUse):
            return await shell.workers_in_use(dict(task.workers))
        if isinstance(task, WriteFiles):
            await shell.write_files(dict(task.files), task.generation)
            return self.clock.now()
        await shell.run_script(task.script, task.workers)
        return None

    async def _check_uid(self, launcher: LauncherContainer) -> None:
        """Raise LauncherGoneError if another pod has the name; exec requests take no UID."""
        pod = await self.client.get(PODS, launcher.pod, Object)
        if pod.metadata.uid != launcher.uid or pod.metadata.is_terminating:
            raise LauncherGoneError(f"the launcher {launcher.pod} is gone or terminating")


def exec_limiter(max_scripts: int, max_others: int) -> ExecLimiter:
    """Return the limiter of tasks in launchers: scaler scripts have slots of their own.

    As many slots again are reserved for namespaces that run no task: a few others may hold the
    first ones for an hour.
    """
    scripts = FairSemaphore(max_scripts, extra=max_scripts)
    others = FairSemaphore(max_others, extra=max_others)

    def slot(owner: ObjectKey, task: ExecTask) -> AbstractAsyncContextManager[None]:
        return (scripts if isinstance(task, RunScript) else others).slot(owner.namespace)

    return slot

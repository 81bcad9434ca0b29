"""Runs tasks in launchers, one command per task; the caller decides on retries."""

import attrs

from dlctl.api.meta import PODS, Object, ObjectKey
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.reconcilers.membership.exec_tasks import (
    CheckInUse,
    ExecTask,
    LauncherContainer,
    ProbeWorkers,
    WriteFiles,
)
from dlctl.reconcilers.membership.launcher_shell import LauncherShell


class LauncherGoneError(DlctlError):
    """The launcher pod no longer exists, even if another pod has its name."""


@attrs.frozen
class ExecRunner:
    """Runs commands in the launchers of all jobs."""

    client: Client

    async def exec(self, owner: ObjectKey, task: ExecTask) -> object:
        """Run a task and return its result.

        A :class:`ProbeResult` for a probe, the names of the workers in use for a check, else None.

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
        else:
            await shell.run_script(task.script, task.workers)
        return None

    async def _check_uid(self, launcher: LauncherContainer) -> None:
        """Raise LauncherGoneError if another pod has the name; exec requests take no UID."""
        pod = await self.client.get(PODS, launcher.pod, Object)
        if pod.metadata.uid != launcher.uid or pod.metadata.is_terminating:
            raise LauncherGoneError(f"the launcher {launcher.pod} is gone or terminating")

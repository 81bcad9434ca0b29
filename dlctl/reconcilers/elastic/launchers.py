"""Errands carried out in launchers, one command each. How often, is for who asks for them."""

import attrs

from dlctl.api.meta import PODS, Object, ObjectKey
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.reconcilers.elastic.errands import Deliver, Errand, Launcher, LetGo, Probe
from dlctl.reconcilers.elastic.shell import LauncherShell


class LauncherGoneError(DlctlError):
    """The pod that a command is for does not exist any more, whatever has its name."""


@attrs.frozen
class Launchers:
    """The launchers of all jobs, as far as a client may run commands in them."""

    client: Client

    async def perform(self, owner: ObjectKey, errand: Errand) -> object:
        """Carry an errand out.

        A probe results in a :class:`Reach`, a look whether workers were let go in those that are
        still in use, the others in nothing.

        :raises DlctlError: if it could not be done.
        """
        await self._check(errand.launcher)
        shell = LauncherShell(self.client.execute, errand.launcher.pod, errand.launcher.container)
        if isinstance(errand, Probe):
            return await shell.probe(errand.workers)
        if isinstance(errand, LetGo):
            return await shell.users(dict(errand.workers))
        if isinstance(errand, Deliver):
            await shell.deliver(dict(errand.files), errand.edition)
        else:
            await shell.run_script(errand.script, errand.workers)
        return None

    async def _check(self, launcher: Launcher) -> None:
        """Raise LauncherGoneError if the name is another pod's; an exec knows no UID."""
        there = await self.client.get(PODS, launcher.pod, Object)
        if there.metadata.uid != launcher.uid or there.metadata.terminating:
            raise LauncherGoneError(f"the launcher {launcher.pod} has gone, or is about to")

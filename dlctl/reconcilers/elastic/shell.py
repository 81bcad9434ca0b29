"""What is said to a running launcher: commands in its container, and what comes of them.

One call is one command. It is not known here why anybody asks, nor what follows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from dlctl.api.elastic import Script
from dlctl.api.meta import ObjectKey
from dlctl.errors import DlctlError
from dlctl.kube.errors import OutputLimitError
from dlctl.kube.execs import Completed, OutputLimit
from dlctl.reconcilers.elastic import answers, commands
from dlctl.reconcilers.elastic.answers import Reach, UnreadableError
from dlctl.reconcilers.elastic.commands import Order

# A thousand processes and ten thousand connections.
_USERS_LIMIT: Final = OutputLimit(4 << 20)
# Of one worker: its name, and why it does not answer.
_PROBE_BYTES: Final = 512
# What a script wrote last says why it has failed.
_SCRIPT_LIMIT: Final = OutputLimit(keeps_end=True)


class CommandFailedError(DlctlError):
    """A command in a launcher has ended with another exit code than zero."""


class Execute(Protocol):
    """What is needed of a client: its :meth:`~dlctl.kube.client.Client.execute`."""

    async def __call__(
        self,
        pod: ObjectKey,
        container: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 10.0,
        limit: OutputLimit | None = None,
    ) -> Completed:
        """Run a command in a container, or raise ApiError or UnreachableError."""
        ...


@attrs.frozen
class LauncherShell:
    """A shell in one container; each use of it has a deadline.

    A command that was cut off by its deadline, or a cancellation, may run on: kubelets do not end
    what nobody listens to any more.
    """

    execute: Execute
    pod: ObjectKey
    container: str

    async def deliver(self, files: Mapping[str, str], edition: int) -> None:
        """Put the texts into files, by path; whoever reads one sees the old or the new one.

        It succeeds as well if the files are of a later edition already, and leaves those alone.
        """
        await self._run(commands.deliver(files, edition), "the files were not delivered")

    async def probe(self, workers: Collection[str]) -> Reach:
        """Find out which of the workers answer; one that is asked counts as used meanwhile."""
        order = commands.probe(workers)
        limit = OutputLimit(_PROBE_BYTES * max(len(workers), 128))
        completed = await self._run(order, "the workers were not looked for", limit)
        return answers.reach(completed.stdout, workers)

    async def users(self, workers: Mapping[str, str]) -> frozenset[str]:
        """Return which of the workers, addresses by name, the launcher has to do with.

        :raises UnreadableError: if the output does not say.
        """
        failure = "the launcher was not looked into"
        completed = await self._run(commands.users(), failure, _USERS_LIMIT)
        if completed.truncated:
            raise UnreadableError("the launcher has more connections than can be looked at")
        return answers.users(completed.stdout, workers)

    async def run_script(self, script: Script, workers: Iterable[str]) -> None:
        """Run a script of the user's; each of the workers is a ``name:slots``."""
        order = commands.run(script, workers)
        await self._run(order, f"the script {script.path} failed", _SCRIPT_LIMIT)

    async def _run(self, order: Order, failure: str, limit: OutputLimit | None = None) -> Completed:
        try:
            completed = await self.execute(
                self.pod,
                self.container,
                order.command,
                stdin=order.stdin,
                timeout_s=order.timeout_s,
                limit=limit,
            )
        except OutputLimitError as error:
            raise CommandFailedError(f"{failure}: {error}") from error
        if completed.exit_code:
            last = _last_line(completed.stderr) or _last_line(completed.stdout)
            message = f"{failure}: exit code {completed.exit_code}{last and f': {last}'}"
            raise CommandFailedError(message)
        return completed


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""

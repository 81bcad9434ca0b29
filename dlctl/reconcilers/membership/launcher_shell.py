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
from dlctl.kube.execs import ExecResult, OutputLimit
from dlctl.reconcilers.membership import exec_output, exec_requests
from dlctl.reconcilers.membership.exec_output import InspectionError, ProbeResult
from dlctl.reconcilers.membership.exec_requests import ExecRequest

# A thousand processes and ten thousand connections.
_CONNECTIONS_LIMIT: Final = OutputLimit(4 << 20)
# Of one worker: its name, and why it does not answer.
_PROBE_BYTES: Final = 512
# What a script wrote last says why it has failed.
_SCRIPT_LIMIT: Final = OutputLimit(keep_end=True)


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
        output_limit: OutputLimit | None = None,
    ) -> ExecResult:
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

    async def write_files(self, files: Mapping[str, str], generation: int) -> None:
        """Put the texts into files, by path; whoever reads one sees the old or the new one.

        It succeeds as well if the files are of a later edition already, and leaves those alone.
        """
        await self._run(
            exec_requests.write_files(files, generation), "the files were not delivered"
        )

    async def probe_workers(self, workers: Collection[str]) -> ProbeResult:
        """Find out which of the workers answer; one that is asked counts as used meanwhile."""
        request = exec_requests.probe_workers(workers)
        limit = OutputLimit(_PROBE_BYTES * max(len(workers), 128))
        completed = await self._run(request, "the workers were not looked for", limit)
        return exec_output.parse_probe(completed.stdout, workers)

    async def workers_in_use(self, workers: Mapping[str, str]) -> frozenset[str]:
        """Return which of the workers, addresses by name, the launcher has to do with.

        :raises UnreadableError: if the output does not say.
        """
        failure = "the launcher was not looked into"
        completed = await self._run(exec_requests.list_connections(), failure, _CONNECTIONS_LIMIT)
        if completed.truncated:
            raise InspectionError("the launcher has more connections than can be looked at")
        return exec_output.parse_workers_in_use(completed.stdout, workers)

    async def run_script(self, script: Script, workers: Iterable[str]) -> None:
        """Run a script of the user's; each of the workers is a ``name:slots``."""
        request = exec_requests.run_script(script, workers)
        await self._run(request, f"the script {script.path} failed", _SCRIPT_LIMIT)

    async def _run(
        self, request: ExecRequest, failure: str, output_limit: OutputLimit | None = None
    ) -> ExecResult:
        try:
            completed = await self.execute(
                self.pod,
                self.container,
                request.command,
                stdin=request.stdin,
                timeout_s=request.timeout_s,
                output_limit=output_limit,
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

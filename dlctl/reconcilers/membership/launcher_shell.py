"""Commands in a running launcher's container, and their results.

One call is one command. The callers decide on retries and consequences.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.api.objects.scalers import Script
from dlctl.controller.shared_thread import SharedThread
from dlctl.errors import DlctlError
from dlctl.kube.errors import OutputLimitError
from dlctl.kube.streams.execs import ExecResult, OutputLimit
from dlctl.reconcilers.membership import exec_output, exec_requests
from dlctl.reconcilers.membership.exec_output import InspectionError, ProbeResult
from dlctl.reconcilers.membership.exec_requests import ExecRequest

# Enough for a thousand processes and ten thousand connections.
_CONNECTIONS_LIMIT: Final = OutputLimit(4 << 20)
# From here on, a launcher could block the event loop by what it writes.
_LARGE_OUTPUT_BYTES: Final = 1 << 17
_READER: Final = SharedThread("launcher output")
# Per worker: its name, and why it does not respond.
_PROBE_BYTES: Final = 512
# The last output of a script shows why it failed.
_SCRIPT_LIMIT: Final = OutputLimit(keep_end=True)


class CommandFailedError(DlctlError):
    """A command in a launcher has exited with a non-zero code."""


class Execute(Protocol):
    """The required part of a client: its :meth:`~dlctl.kube.client.Client.execute`."""

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
    """A shell in one container; each command has a timeout.

    A command may keep running after its timeout or cancellation: kubelets do not end commands whose
    client has disconnected.
    """

    execute: Execute
    pod: ObjectKey
    container: str

    async def write_files(self, files: Mapping[str, str], generation: int) -> None:
        """Write files by path, each atomically.

        If the existing files are of a later generation, they are kept, and the command succeeds.
        """
        await self._run(exec_requests.write_files(files, generation), "writing the files failed")

    async def probe_workers(self, workers: Collection[str]) -> ProbeResult:
        """Return which of the workers respond; probed workers count as used meanwhile."""
        request = exec_requests.probe_workers(workers)
        limit = OutputLimit(_PROBE_BYTES * max(len(workers), 128))
        completed = await self._run(request, "probing the workers failed", limit)
        return exec_output.parse_probe(completed.stdout, workers)

    async def workers_in_use(self, workers: Mapping[str, str]) -> frozenset[str]:
        """Return which of the workers (addresses by name) the launcher uses.

        :raises InspectionError: if the launcher cannot be inspected.
        """
        failure = "inspecting the launcher failed"
        completed = await self._run(exec_requests.list_connections(), failure, _CONNECTIONS_LIMIT)
        if completed.is_truncated:
            raise InspectionError("the launcher has too many connections to inspect")
        read = partial(exec_output.parse_workers_in_use, completed.stdout, workers)
        if len(completed.stdout) < _LARGE_OUTPUT_BYTES:
            return read()
        return await _READER.run(self.pod.namespace, read)

    async def run_script(self, script: Script, workers: Iterable[str]) -> None:
        """Run a user's script; each worker is passed as ``name:slots``."""
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

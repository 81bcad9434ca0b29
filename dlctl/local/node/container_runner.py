"""Runs one container through its starts and restarts until it is done or the pod stops.

Its record is what gets reported; it does not access the API server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import attrs

from dlctl.clock import Clock
from dlctl.local.node.api_types import Container, NodePod
from dlctl.local.node.env import MissingReferenceError
from dlctl.local.node.images import Image, NoCommandError
from dlctl.local.node.launch import DEFAULT_MESSAGE_PATH, PodPaths
from dlctl.local.node.logs import LogArchive, LogFiles, tail_position
from dlctl.local.node.protocol import StartContainer
from dlctl.local.node.restarts import CrashLoopBackoff, should_restart
from dlctl.local.node.sandboxes import Sandboxes, StartError
from dlctl.local.node.status import ContainerRecord, Running, Terminated, Waiting
from dlctl.local.node.volumes import UnsupportedVolumeError

# Errors that may be fixed from outside, such as a ConfigMap created later, are retried.
CONFIG_RETRY_S: Final = 1.0
_MESSAGE_BYTES: Final = 4096
_MESSAGE_LINES: Final = 80


@attrs.define(eq=False)
class ContainerRunner:
    """Runs one container; :meth:`stop` stops it for good."""

    container: Container
    image: Image
    init: bool
    pod: NodePod
    paths: PodPaths
    # Resolves the container's references again for each start.
    start_request: Callable[[Container, Image, Path], Awaitable[StartContainer]]
    warn: Callable[[str, str], None]
    sandboxes: Sandboxes
    backoff: CrashLoopBackoff
    clock: Clock
    changed: Callable[[], None]
    log_archive: LogArchive | None = None
    record: ContainerRecord = attrs.field(init=False)
    _running: str = attrs.field(init=False, default="")
    _stopping: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _killed: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        name, image = self.container.name, self.container.image or ""
        self.record = ContainerRecord(name, image, Waiting("ContainerCreating"))

    @property
    def logs(self) -> LogFiles:
        return LogFiles(self.paths.logs(self.container.name))

    @property
    def running(self) -> str:
        """Return the agent's name of the running program; empty if there is none."""
        return self._running if self.record.running else ""

    def is_at(self, start: int) -> bool:
        """Return whether this start of the program is in progress."""
        return self.record.running and self.record.restarts == start

    def stop(self, *, kill: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``kill``; the program is not restarted."""
        self._stopping.set()
        self._killed = self._killed or kill
        if self._running:
            self.sandboxes.stop(self._running, kill=kill)

    async def run(self) -> None:
        """Run until there is no further start; the record has the outcome."""
        while not self._stopping.is_set():
            ended = await self._run_once()
            if ended is None:
                break
            self.record.state = ended
            if self._stopping.is_set() or not should_restart(
                self.pod, ended.exit_code, init=self.init
            ):
                break
            ran_s = (ended.finished_at - ended.started_at).total_seconds()
            await self._back_off(ended, self.backoff.delay_s(ran_s))
        self.record.done = True
        self.changed()

    async def _back_off(self, ended: Terminated, wait_s: float) -> None:
        self.record.last = ended
        if wait_s:
            self.record.state = Waiting(
                "CrashLoopBackOff",
                f"back-off {wait_s:g}s restarting failed container={self.container.name}",
            )
            self.changed()
            await self._stopped_within(wait_s)
        if self._stopping.is_set():
            self.record.state = ended
        else:
            self.record.restarts += 1

    async def _run_once(self) -> Terminated | None:
        """Start the program and wait until it terminates; None if the pod was stopped before."""
        try:
            exit_code = await self._start()
        except StartError as failure:
            return await self._record_start_failure(failure)
        if exit_code is None:
            return None
        since = self.clock.now()
        self.record.state = Running(since)
        self.changed()
        code = await exit_code
        self._running = ""
        message = await asyncio.to_thread(self._message, code)
        reason = "Error" if code else "Completed"
        return Terminated(code, reason, since, self.clock.now(), message)

    async def _start(self) -> "asyncio.Future[int] | None":
        while not self._stopping.is_set():
            try:
                await asyncio.to_thread(self._rotate_logs)
                start = await self.start_request(self.container, self.image, self._log_path)
            except (MissingReferenceError, NoCommandError, UnsupportedVolumeError) as failure:
                self.record.state = Waiting("CreateContainerConfigError", str(failure))
                self.warn("Failed", f"Error: {failure}")
                self.changed()
                await self._stopped_within(CONFIG_RETRY_S)
                continue
            exit_code = await self.sandboxes.start(start)
            self._running = start.container
            if self._stopping.is_set():
                # stop() was called when there was nothing to stop yet.
                self.sandboxes.stop(start.container, kill=self._killed)
            return exit_code
        return None

    def _rotate_logs(self) -> None:
        self.logs.rotate(self.record.restarts)
        if self.log_archive:
            self.log_archive.keep(self._log_path, self.pod.key, self.container.name)
        self.paths.message(self.container.name).write_bytes(b"")

    async def _record_start_failure(self, failure: StartError) -> Terminated:
        await asyncio.to_thread(self._write_failure, str(failure))
        now = self.clock.now()
        return Terminated(failure.exit_code, "StartError", now, now, str(failure))

    def _write_failure(self, message: str) -> None:
        # The log is where users look for the reason first.
        with self._log_path.open("a", encoding="utf-8") as log:
            log.write(f"cannot start the container: {message}\n")

    @property
    def _log_path(self) -> Path:
        return self.logs.path(self.record.restarts)

    def _message(self, exit_code: int) -> str:
        path = self.paths.message(self.container.name)
        if self.container.termination_message_path not in (None, DEFAULT_MESSAGE_PATH):
            text = path.read_bytes()[:_MESSAGE_BYTES].decode(errors="replace")
            if text:
                return text
        if exit_code and self.container.termination_message_policy == "FallbackToLogsOnError":
            with self._log_path.open("rb") as log:
                log.seek(tail_position(self._log_path, _MESSAGE_LINES))
                return log.read()[-_MESSAGE_BYTES:].decode(errors="replace")
        return ""

    async def _stopped_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

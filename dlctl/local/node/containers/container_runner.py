"""Runs one container through its starts and restarts until it is done or the pod stops.

Its record is what gets reported; it does not access the API server.
"""

import asyncio
import datetime
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs
import msgspec

from dlctl.clock import Clock
from dlctl.errors import DlctlError
from dlctl.local.node.agent.sandboxes import Sandboxes, StartError
from dlctl.local.node.api_types import Container, NodePod
from dlctl.local.node.containers.control_groups import ContainerGroup, ControlGroups, ResourceLimits
from dlctl.local.node.containers.handler_runner import HandlerRunner
from dlctl.local.node.containers.images import Image
from dlctl.local.node.containers.logs import MAX_LOG_BYTES, LogArchive, LogFiles
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.containers.probes import ContainerProbes
from dlctl.local.node.containers.restarts import CrashLoopBackoff, should_restart
from dlctl.local.node.containers.termination_message import termination_message
from dlctl.local.node.handler_types import Handler, Probe
from dlctl.local.node.protocol import StartContainer
from dlctl.local.node.status import (
    ContainerRecord,
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
)

# Errors that may be fixed from outside, such as a ConfigMap created later, are retried.
CONFIG_RETRY_S: Final = 1.0
# Kubelets wait without end for a hook after the start.
_HOOK_TIMEOUT_S: Final = 24 * 3600.0
# The exit code that container runtimes report for a program that could not be executed.
_NOT_STARTED: Final = 128
_KILLED: Final = 128 + signal.SIGKILL


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
    record_event: Callable[[str, str], None]
    warn: Callable[[str, str], None]
    sandboxes: Sandboxes
    backoff: CrashLoopBackoff
    clock: Clock
    changed: Callable[[], None]
    handler_runner: HandlerRunner
    groups: ControlGroups
    log_archive: LogArchive | None = None
    record: ContainerRecord = attrs.field(init=False)
    _running: str = attrs.field(init=False, default="")
    _stopping: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _killed: bool = attrs.field(init=False, default=False)
    # None where the present run has no limits, or the machine enforces none.
    _group: ContainerGroup | None = attrs.field(init=False, default=None)
    _started: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        name, image = self.container.name, self.container.image or ""
        waiting = ContainerWaiting("ContainerCreating")
        self.record = ContainerRecord(name, image, waiting, sidecar=self.sidecar)

    @property
    def sidecar(self) -> bool:
        return self.init and self.container.is_sidecar

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

    @property
    def program(self) -> str:
        """Return the agent's name of the program, also while its ``postStart`` hook runs."""
        return self._running

    def stop(self, *, kill: bool) -> None:
        """End the program, with ``kill`` by SIGKILL at once; it is not restarted."""
        if self._running and not self._stopping.is_set():
            self.record_event("Killing", f"Stopping container {self.container.name}")
        self._stopping.set()
        self._killed = self._killed or kill
        if self._running and kill:
            self.sandboxes.stop(self._running, kill=True)

    def abandon(self, message: str) -> None:
        """Kill the program without waiting for its end, after :meth:`run` has failed."""
        self.stop(kill=True)
        if isinstance(state := self.record.state, ContainerRunning):
            now = self.clock.now()
            self.record.state = ContainerTerminated(
                _KILLED, "ContainerStatusUnknown", state.since, now, message
            )
        self.record.done = True

    async def started(self) -> None:
        """Wait until the container has started, by its startup probe, or is done."""
        await self._started.wait()

    async def run(self) -> None:
        """Run until there is no further start; the record has the outcome."""
        while not self._stopping.is_set():
            ended = await self._run_once()
            if ended is None:
                break
            self.record.state = ended
            if self._stopping.is_set() or not should_restart(
                self.pod, ended.exit_code, init=self.init, sidecar=self.sidecar
            ):
                break
            ran_s = (ended.finished_at - ended.started_at).total_seconds()
            await self._back_off(ended, self.backoff.delay_s(ran_s))
        self.record.done = True
        self._started.set()
        self.changed()

    async def _back_off(self, ended: ContainerTerminated, wait_s: float) -> None:
        before, self.record.last = self.record.last, ended
        if wait_s:
            name, pod = self.container.name, self.pod.metadata
            self.warn(
                "BackOff",
                f"Back-off restarting failed container {name} in pod "
                f"{pod.name}_{pod.namespace}({pod.uid})",
            )
            self.record.state = ContainerWaiting(
                "CrashLoopBackOff",
                f"back-off {wait_s:g}s restarting failed container={self.container.name}",
            )
            self.changed()
            await self._stopped_within(wait_s)
        if self._stopping.is_set():
            self.record.state, self.record.last = ended, before
        else:
            self.record.restarts += 1

    async def _run_once(self) -> ContainerTerminated | None:
        """Start the program and wait until it terminates; None if the pod was stopped before."""
        try:
            exit_code = await self._start()
        except StartError as failure:
            return await self._record_start_failure(failure)
        if exit_code is None:
            return None
        since = self.clock.now()
        if not self._post_start:
            self._record_running(since)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in (self._attend(since), self._end())]
            code = await exit_code
            for task in tasks:
                task.cancel()
        self._running = ""
        message_file = self.paths.message(self.container.name)
        message = await asyncio.to_thread(
            termination_message, self.container, code, message_file, self._log_path
        )
        reason = "Error" if code else "Completed"
        if self._group:
            if code and await asyncio.to_thread(self._group.has_run_out_of_memory):
                reason = "OOMKilled"
            await self._remove_group()
        return ContainerTerminated(code, reason, since, self.clock.now(), message)

    @property
    def _post_start(self) -> Handler | None:
        lifecycle = self.container.lifecycle
        return lifecycle.post_start if lifecycle else None

    async def _attend(self, since: datetime.datetime) -> None:
        """Run the hook after the start, and the probes."""
        if self._post_start:
            try:
                await self.handler_runner.perform(self._post_start, _HOOK_TIMEOUT_S)
            except DlctlError as failure:
                self.warn("FailedPostStartHook", f"PostStartHook failed: {failure}")
                await self._terminate(self.pod.grace_s)
                return
            self._record_running(since)
        await ContainerProbes(
            container=self.container,
            handler_runner=self.handler_runner,
            record=self.record,
            changed=self._on_probe,
            warn=self.warn,
            kill=self._kill_unhealthy,
        ).run()

    def _record_running(self, since: datetime.datetime) -> None:
        self.record.state = ContainerRunning(since)
        self.record.started = self.container.startup_probe is None
        self.record.passing = self.container.readiness_probe is None
        self._on_probe()

    def _on_probe(self) -> None:
        if self.record.started:
            self.record.ever_started = True
            self._started.set()
        self.changed()

    async def _kill_unhealthy(self, probe: Probe) -> None:
        kind = "startup" if probe is self.container.startup_probe else "liveness"
        restarted = should_restart(self.pod, _KILLED, init=self.init, sidecar=self.sidecar)
        self.record_event(
            "Killing",
            f"Container {self.container.name} failed {kind} probe"
            + (", will be restarted" if restarted else ""),
        )
        seconds = probe.termination_grace_period_seconds
        await self._terminate(self.pod.grace_s if seconds is None else seconds)

    async def _end(self) -> None:
        """End the program once the container is to stop; SIGKILL comes from :meth:`stop`."""
        await self._stopping.wait()
        if not self._killed:
            await self._request_end(self.pod.grace_s)

    async def _terminate(self, grace_s: float) -> None:
        """End the program, so that the restart policy applies."""
        running = self._running
        async with asyncio.TaskGroup() as group:
            group.create_task(self._request_end(grace_s))
            await asyncio.sleep(grace_s)
            self.sandboxes.stop(running, kill=True)

    async def _request_end(self, grace_s: float) -> None:
        """Run the hook before the stop, and send SIGTERM."""
        hook = self.container.lifecycle and self.container.lifecycle.pre_stop
        if hook:
            try:
                await self.handler_runner.perform(hook, grace_s)
            except DlctlError as failure:
                self.warn("FailedPreStopHook", f"PreStopHook failed: {failure}")
        self.sandboxes.stop(self._running, kill=False)

    async def _start(self) -> "asyncio.Future[int] | None":
        while not self._stopping.is_set():
            try:
                await asyncio.to_thread(self._rotate_logs)
                start = await self.start_request(self.container, self.image, self._log_path)
            except (DlctlError, OSError) as failure:
                self.record.state = ContainerWaiting("CreateContainerConfigError", str(failure))
                self.warn("Failed", f"Error: {failure}")
                self.changed()
                await self._stopped_within(CONFIG_RETRY_S)
                continue
            self.record_event("Pulled", self.image.pulled_message)
            self.record_event("Created", f"Created container {self.container.name}")
            exit_code = await self.sandboxes.start(await self._limited(start))
            self.record_event("Started", f"Started container {self.container.name}")
            self._running = start.container
            if self._killed:
                # stop() was called when there was nothing to stop yet.
                self.sandboxes.stop(start.container, kill=True)
            return exit_code
        return None

    async def _limited(self, start: StartContainer) -> StartContainer:
        """Return the request with groups that enforce the container's limits, and that of its log.

        :raises StartError: if the kernel rejects a limit.
        """
        limits = ResourceLimits.of(self.container)
        try:
            self._group = await asyncio.to_thread(self.groups.create, limits)
        except OSError as error:
            raise StartError(f"resource limits: {error}") from error
        files = self._group.processes_files if self._group else []
        kept_bytes = 0 if self.log_archive else MAX_LOG_BYTES
        return msgspec.structs.replace(start, groups=files, log_limit_bytes=kept_bytes)

    async def _remove_group(self) -> None:
        if self._group:
            await asyncio.to_thread(self._group.remove)

    def _rotate_logs(self) -> None:
        self.logs.rotate(self.record.restarts)
        if self.log_archive:
            self.log_archive.keep(self._log_path, self.pod.key, self.container.name)
        self.paths.message(self.container.name).write_bytes(b"")

    async def _record_start_failure(self, failure: StartError) -> ContainerTerminated:
        await self._remove_group()
        await asyncio.to_thread(self._write_failure, str(failure))
        self.warn("Failed", f"Error: {failure}")
        now = self.clock.now()
        return ContainerTerminated(_NOT_STARTED, "StartError", now, now, str(failure))

    def _write_failure(self, message: str) -> None:
        # The log is where users look for the reason first; its directory may be gone.
        with suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
            log.write(f"cannot start the container: {message}\n")

    @property
    def _log_path(self) -> Path:
        return self.logs.path(self.record.restarts)

    async def _stopped_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

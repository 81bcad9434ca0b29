"""The lifecycle of one pod on the node: set-up, init containers, containers, removal.

One task per pod, from its binding until its object is gone. Plain calls announce changes
(:meth:`PodWorker.update`, :meth:`PodWorker.object_removed`).
"""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path

import attrs

from dlctl.api.meta import CONFIG_MAPS, ObjectKey
from dlctl.errors import DlctlError
from dlctl.local.node.agent.sandboxes import StartError
from dlctl.local.node.api_types import Container, NodePod
from dlctl.local.node.containers.container_runner import CONFIG_RETRY_S, ContainerRunner
from dlctl.local.node.containers.devices import NoDeviceError
from dlctl.local.node.containers.exec_sessions import (
    ContainerSession,
    ExecCommand,
    NotRunningError,
    open_session,
)
from dlctl.local.node.containers.handler_runner import HandlerRunner
from dlctl.local.node.containers.images import Image, find
from dlctl.local.node.containers.launch import PodRuntime
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.containers.references import references
from dlctl.local.node.containers.restarts import CrashLoopBackoff
from dlctl.local.node.containers.sidecars import Sidecars
from dlctl.local.node.network.addresses import LOOPBACK_IP, NoAddressError
from dlctl.local.node.network.connections import Connection, connect
from dlctl.local.node.pod_setup import NodeContext, PodSetup
from dlctl.local.node.pod_status_reporter import PodStatusReporter
from dlctl.local.node.protocol import StartContainer
from dlctl.local.node.status import ContainerWaiting, PodState
from dlctl.tasks import run_until_first, unwrap_exception_groups

logger = logging.getLogger(__name__)


class PodWorker:
    """Runs one pod; one that ``had_finished`` when first seen only waits for its deletion."""

    def __init__(self, pod: NodePod, context: NodeContext) -> None:
        self.pod = pod
        self.had_finished = pod.finished
        self._context = context
        self._paths = PodPaths.of(context.run_dir, pod.metadata.uid)
        self._pod_setup = PodSetup(pod, context, self._paths)
        self._state = PodState(started_at=context.clock.now(), host_ip=context.host_ip)
        self._reporter = PodStatusReporter(pod, self._state, context.pod_api, context.clock)
        # None before the set-up, and after the end.
        self._runtime: PodRuntime | None = None
        # The first stops the containers; the second, later or never, removes the object.
        self._terminating, self._deleted = asyncio.Event(), asyncio.Event()
        self._kill_timer: asyncio.TimerHandle | None = None
        # The contents of volumes may have changed.
        self._stale = asyncio.Event()
        self._init_runners = [self._runner(c, init=True) for c in pod.spec.init_containers or ()]
        self._runners = [self._runner(c, init=False) for c in pod.spec.containers]
        self._state.init_containers = [runner.record for runner in self._init_runners]
        self._state.containers = [runner.record for runner in self._runners]
        if self._init_runners:
            for record in self._state.containers:
                record.state = ContainerWaiting("PodInitializing")

    def update(self, pod: NodePod) -> None:
        """Accept a newer version; a deletion starts the containers' grace period."""
        self.pod = self._reporter.pod = pod
        if pod.metadata.is_terminating:
            self._stop(pod.grace_s)

    def content_changed(self, kind: str, key: ObjectKey) -> None:
        """Refresh volumes if they show the changed ConfigMap or Secret."""
        config_maps, secrets = references(self.pod)
        names = config_maps if kind == CONFIG_MAPS.kind else secrets
        if key.name in names and key.namespace == self.pod.metadata.namespace:
            self._stale.set()

    def object_removed(self) -> None:
        """Kill the containers: the object is gone, so there is no grace period."""
        self._reporter.close()
        self._stop(0.0)

    def shut_down(self, max_grace_s: float) -> None:
        """End the containers within the pod's grace period, or this one if it is shorter."""
        # The server ends with the node, or calls the pod interrupted later.
        self._reporter.close()
        self._stop(min(self.pod.grace_s, max_grace_s))

    def runner(self, container: str) -> ContainerRunner | None:
        """Return a container by name; the empty name is the first one."""
        everyone = [*self._runners, *self._init_runners]
        return next((r for r in everyone if container in ("", r.container.name)), None)

    def session(
        self, container: str, command: ExecCommand
    ) -> AbstractAsyncContextManager[ContainerSession]:
        """Run a command in a container for the duration of the block.

        :raises NotRunningError: if the container's program is not running.
        """
        runner = self.runner(container)
        if runner is None or not runner.running or self._runtime is None:
            raise NotRunningError(f'container not found ("{container}")')
        return self._open_session(runner.container, runner.running, command)

    @property
    def _pod_runtime(self) -> PodRuntime:
        assert self._runtime is not None, "containers run only once the pod is set up"
        return self._runtime

    def _open_session(
        self, container: Container, program: str, command: ExecCommand
    ) -> AbstractAsyncContextManager[ContainerSession]:
        words = self._pod_runtime.exec_argv(container, command.argv)
        return open_session(
            self._context.sandboxes,
            program,
            attrs.evolve(command, argv=words),
            self._paths.sessions / uuid.uuid4().hex,
        )

    async def connect(self, port: int) -> Connection:
        """Connect to a port on which a program of the pod listens.

        :raises NotRunningError: if the pod has no network yet, or no longer.
        :raises OSError: if nothing listens there.
        """
        if self._runtime is None:
            raise NotRunningError(f'pod "{self.pod.key.name}" is not running')
        opened = await self._context.sandboxes.open_socket(self.pod.metadata.uid)
        # Where programs listen that are meant for this machine only, such as TensorBoard.
        return await connect(opened, (LOOPBACK_IP, port))

    async def run(self) -> None:
        """Run the whole lifecycle; on return, the object and the files are gone."""
        self.update(self.pod)
        if not self.pod.finished:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._reporter.run(), name="pod status")
                refreshing = group.create_task(self._refresh_volumes(), name="pod volumes")
                deadline = self._arm_deadline()
                try:
                    with unwrap_exception_groups():
                        await self._run_pod()
                except Exception as failure:
                    # One broken pod must not end the node.
                    logger.exception("pod failed", extra={"key": str(self.pod.key)})
                    self._abandon(str(failure))
                finally:
                    refreshing.cancel()
                    if deadline:
                        deadline.cancel()
                await self._pod_setup.tear_down()
                self._runtime = None
                self._reporter.finish()
        await self._deleted.wait()
        if self._kill_timer:
            self._kill_timer.cancel()
        self._pod_setup.forget()
        if not self._reporter.is_closed:
            await self._context.pod_api.remove(self.pod)
        await asyncio.to_thread(self._paths.remove, keep_logs=self._context.keep_logs)
        for runner in (*self._init_runners, *self._runners):
            self._context.log_times.forget(runner.logs.directory)

    async def _run_pod(self) -> None:
        await self._set_up()
        async with asyncio.TaskGroup() as beside:
            sidecars = Sidecars(beside)
            for runner in self._init_runners:
                if runner.sidecar and not self._terminating.is_set():
                    sidecars.start(runner)
                    await run_until_first(runner.started(), self._terminating.wait())
                elif not self._terminating.is_set():
                    await runner.run()
                if not runner.record.initialized:
                    for record in self._state.containers:
                        record.done = True
                    break
            else:
                await self._run_containers()
            await sidecars.stop(self.pod.grace_s)

    async def _run_containers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for runner in self._runners:
                group.create_task(runner.run(), name=f"container {runner.container.name}")

    async def _refresh_volumes(self) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                await self._pod_setup.refresh_volumes()
            except (DlctlError, OSError) as failure:
                self._warn("FailedMount", str(failure))

    def _abandon(self, message: str) -> None:
        self._state.failure_reason, self._state.message = "UnexpectedError", message
        self._terminating.set()
        for runner in [*self._init_runners, *self._runners]:
            runner.abandon(message)

    async def _set_up(self) -> None:
        while not self._terminating.is_set():
            try:
                await asyncio.to_thread(self._paths.make)
                self._state.ip = self._state.ip or await self._pod_setup.join_network()
                self._mark_changed()
                self._runtime = await self._pod_setup.create_volumes(self._state.ip, self._warn)
            except (StartError, NoAddressError, NoDeviceError) as failure:
                self._warn("FailedCreatePodSandBox", str(failure))
            except (DlctlError, OSError) as failure:
                self._warn("FailedMount", str(failure))
            else:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(CONFIG_RETRY_S):
                    await self._terminating.wait()

    def _runner(self, container: Container, *, init: bool) -> ContainerRunner:
        context = self._context
        return ContainerRunner(
            container=container,
            image=find(context.images, container.image or ""),
            init=init,
            pod=self.pod,
            paths=self._paths,
            start_request=self._start_request,
            record_event=partial(context.events.record, self.pod),
            warn=self._warn,
            sandboxes=context.sandboxes,
            backoff=CrashLoopBackoff(context.crash_loop, context.immediate_restarts()),
            clock=context.clock,
            changed=self._mark_changed,
            groups=context.groups,
            handler_runner=HandlerRunner(
                container=container,
                pod_ip=lambda: self._state.ip,
                exec=partial(self._exec, container),
                open_socket=lambda: context.sandboxes.open_socket(self.pod.metadata.uid),
            ),
            log_archive=context.log_archive,
        )

    def _exec(
        self, container: Container, argv: Sequence[str]
    ) -> AbstractAsyncContextManager[ContainerSession]:
        """Run the command of a probe or a hook."""
        runner = self.runner(container.name)
        assert runner is not None, "every container has a runner"
        return self._open_session(container, runner.program, ExecCommand(argv))

    async def _start_request(
        self, container: Container, image: Image, log_path: Path
    ) -> StartContainer:
        self._context.log_times.watch(log_path)
        sources = await self._context.pod_api.sources(self.pod)
        setting = attrs.evolve(self._pod_runtime, pod=self.pod, sources=sources)
        return await asyncio.to_thread(setting.start_request, container, image, log_path)

    def _arm_deadline(self) -> asyncio.TimerHandle | None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None:
            return None
        return asyncio.get_running_loop().call_later(seconds, self._exceed_deadline)

    def _exceed_deadline(self) -> None:
        self._state.failure_reason = "DeadlineExceeded"
        self._state.message = "Pod was active on the node longer than the specified deadline"
        self._stop_containers(self.pod.grace_s)

    def _stop(self, grace_s: float) -> None:
        self._deleted.set()
        self._stop_containers(grace_s)

    def _stop_containers(self, grace_s: float) -> None:
        """Send SIGTERM to all now, SIGKILL later; only a shorter period replaces the first."""
        loop = asyncio.get_running_loop()
        kill_at = loop.time() + grace_s
        if self._kill_timer and grace_s > 0 and self._kill_timer.when() <= kill_at:
            return
        self._terminating.set()
        for runner in [*self._init_runners, *self._runners]:
            # Sidecars end after the others, unless time is up.
            if grace_s <= 0 or not runner.sidecar:
                runner.stop(kill=grace_s <= 0)
        if self._kill_timer:
            self._kill_timer.cancel()
        if grace_s > 0:
            self._kill_timer = loop.call_at(kill_at, self._stop_containers, 0.0)

    def _warn(self, reason: str, message: str) -> None:
        self._context.events.warn(self.pod, reason, message)

    def _mark_changed(self) -> None:
        # A name without a probe is there from the start: nobody needs it to be absent.
        ready = self._state.ready or not self.pod.has_readiness_probe
        self._context.names.set_ready(self.pod.metadata.uid, ready=ready)
        self._reporter.notify()

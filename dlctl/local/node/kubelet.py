"""The kubelet of a node on this machine: runs the pods bound to it, and serves their logs.

In isolated networks each pod has its own ports; in the machine's own network they share its ports.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sized
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path

import attrs

from dlctl.api.meta import CONFIG_MAPS, PODS, SECRETS, SERVICES, UID, Object, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.backoff import Backoff
from dlctl.clock import Clock, SystemClock
from dlctl.errors import DlctlError
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError
from dlctl.local.node.agent.agent_process import open_sandboxes
from dlctl.local.node.agent.sandboxes import (
    Network,
    NetworkChoice,
    NodeSockets,
    Sandboxes,
)
from dlctl.local.node.api_access import ApiAccess
from dlctl.local.node.api_types import NodePod, NodeService
from dlctl.local.node.containers import logs
from dlctl.local.node.containers.control_groups import ControlGroups, control_groups
from dlctl.local.node.containers.devices import DevicePool, find_devices
from dlctl.local.node.containers.exec_sessions import ContainerSession, ExecCommand, NotRunningError
from dlctl.local.node.containers.log_times import LogTimes
from dlctl.local.node.containers.logs import LogArchive, LogOptions
from dlctl.local.node.containers.restarts import CRASH_LOOP
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.network.addresses import AddressPool
from dlctl.local.node.network.connections import Connection
from dlctl.local.node.network.etc_files import machine_hosts, write_etc
from dlctl.local.node.network.hosts_files import HostsFiles
from dlctl.local.node.network.internet import relay_connections
from dlctl.local.node.network.name_server import answer_queries
from dlctl.local.node.node_object import NODE_NAME, node_object
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.pod_events import PodEvents
from dlctl.local.node.pod_setup import NodeContext
from dlctl.local.node.pod_worker import PodWorker
from dlctl.local.node.status import ContainerWaiting


class LogUnavailableError(DlctlError):
    """The pod or container is not on this node, or has not started (again) yet."""


@attrs.frozen
class KubeletOptions:
    """How a node runs pods.

    ``images`` maps image names, with or without tag, to their substitutes: the prefix of a Python
    environment, or an executable. With ``keep_logs`` a pod's logs outlive it, until the run
    directory is removed.
    """

    images: Mapping[str, Path] = attrs.field(factory=dict)
    network: NetworkChoice = "auto"
    crash_loop: Backoff = CRASH_LOOP
    # After this many, each restart of a container waits, so that its pod can be ended before; asked
    # as a container starts. None for no limit.
    immediate_restarts: Callable[[], int | None] = lambda: None
    name: str = NODE_NAME
    keep_logs: bool = False
    # Keeps the log of each start of each container, also after the run directory is removed.
    log_dir: Path | None = None
    node_labels: Mapping[str, str] = attrs.field(factory=dict)
    # Without this, requests for GPUs are ignored, and every pod sees all of them.
    hand_out_gpus: bool = True
    directories: NodeDirectories = attrs.field(factory=NodeDirectories)


class Kubelet:
    """Runs pods for as long as :meth:`run` does; none of their processes is left afterwards."""

    def __init__(
        self,
        client: Client,
        run_dir: Path,
        options: KubeletOptions,
        *,
        api: ApiAccess | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.options = options
        self._api = api
        # Once the node is ready; None where pods use the machine's network.
        self.sockets: NodeSockets | None = None
        self.clock = clock or SystemClock()
        self.pods = Informer(client, PODS, NodePod, clock=self.clock)
        # None until the node runs: only then is it known what the machine allows.
        self.network: Network | None = None
        self.ready = asyncio.Event()
        self._services = Informer(client, SERVICES, NodeService, clock=self.clock)
        self._contents: tuple[Informer[Object], ...] = tuple(
            Informer(client, resource, Object, clock=self.clock)
            for resource in (CONFIG_MAPS, SECRETS)
        )
        self._client = client
        self._run_dir = run_dir
        self._workers: dict[UID, PodWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._shutting_down = False
        self._log_times = LogTimes(self.clock)

    async def run(self) -> None:
        """Run pods until cancelled, or until the agent, the parent of all containers, is lost."""
        await asyncio.to_thread(self._run_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
        devices = await asyncio.to_thread(find_devices) if self.options.hand_out_gpus else {}
        async with (
            self._log_times.observed(),
            control_groups() as groups,
            open_sandboxes(self._run_dir / "agent.log", choice=self.options.network) as sandboxes,
            asyncio.TaskGroup() as group,
        ):
            self.network, self.sockets = sandboxes.network, sandboxes.sockets
            context = await self._node_context(sandboxes, groups, DevicePool(devices))
            self._services.add_handler(lambda _: context.names.services_changed())
            self._start_tasks(context, group)
            await self._register(context.host_ip, devices)
            await self._services.wait_synced()
            self.pods.add_handler(lambda change: self._on_pod_change(change, context, group))
            for informer in self._contents:
                informer.add_handler(partial(self._on_content_change, informer.resource.kind))
            self.ready.set()

    async def _node_context(
        self, sandboxes: Sandboxes, groups: ControlGroups, devices: DevicePool
    ) -> NodeContext:
        """Return what pods share; writes the files of ``/etc`` that they mount."""
        options, network = self.options, sandboxes.network
        resolve_outside = network.isolated and not network.no_internet
        return NodeContext(
            node_name=options.name,
            run_dir=self._run_dir,
            images=options.images,
            crash_loop=options.crash_loop,
            immediate_restarts=options.immediate_restarts,
            sandboxes=sandboxes,
            names=HostsFiles(self._services.store, await asyncio.to_thread(machine_hosts)),
            addresses=AddressPool(),
            devices=devices,
            groups=groups,
            services=self._services.store,
            etc=await asyncio.to_thread(
                write_etc, self._run_dir / "etc", outside_names=resolve_outside
            ),
            pod_api=PodApi(self._client),
            events=PodEvents(
                self._client, {"component": "kubelet", "host": options.name}, self.clock
            ),
            clock=self.clock,
            log_times=self._log_times,
            keep_logs=options.keep_logs,
            log_archive=LogArchive(options.log_dir) if options.log_dir else None,
            directories=options.directories,
            api=self._api.in_cluster if self._api and network.isolated else self._api,
        )

    def _start_tasks(self, context: NodeContext, group: asyncio.TaskGroup) -> None:
        """Start the tasks of the node; each pod has one of its own."""
        for part in (
            context.sandboxes.receive,
            self._services.run,
            self.pods.run,
            context.names.run,
            context.events.run,
            *(informer.run for informer in self._contents),
        ):
            group.create_task(part(), name=f"node: {part.__qualname__}")
        sockets = context.sandboxes.sockets
        if sockets and sockets.relay and sockets.dns:
            relay = relay_connections(sockets.relay)
            group.create_task(relay, name="node: connections to the outside")
            group.create_task(answer_queries(sockets.dns), name="node: DNS")

    @property
    def is_idle(self) -> bool:
        """Return whether all pods on the node have ended, or there are none."""
        return all(worker.pod.finished for worker in self._workers.values())

    async def shut_down(self, max_grace_s: float) -> None:
        """End all pods as a graceful node shutdown does, and start no others; return once they end.

        Each has its own grace period, but no more than this one.
        """
        self._shutting_down = True
        for worker in self._workers.values():
            worker.shut_down(max_grace_s)
        if self._tasks:
            await asyncio.wait(self._tasks)

    def logs(self, pod: ObjectKey, container: str, query: LogOptions) -> AsyncIterator[bytes]:
        """Return the output of a container.

        :raises LogUnavailableError: at once, if there is none.
        """
        worker = self._worker(pod)
        runner = worker.runner(container) if worker else None
        if worker is None or runner is None:
            raise LogUnavailableError(f'pod "{pod.name}" is not on this node yet')
        if worker.had_finished:
            raise LogUnavailableError(
                f'the log of pod "{pod.name}" is gone: the pod ended before this cluster started'
            )
        start = runner.record.restarts
        if query.previous:
            start -= 1
            if start < 0:
                raise LogUnavailableError(
                    f'previous terminated container "{runner.container.name}" in pod '
                    f'"{pod.name}" not found'
                )
        elif isinstance(runner.record.state, ContainerWaiting):
            if runner.record.last is None:
                raise LogUnavailableError(
                    f'container "{runner.container.name}" in pod "{pod.name}" is waiting to '
                    f"start: {runner.record.state.reason}"
                )
        path = runner.logs.path(start)
        times = self._log_times.of(path)
        return logs.read(path, query, lambda: not runner.is_at(start), times)

    def session(
        self, pod: ObjectKey, container: str, command: ExecCommand
    ) -> AbstractAsyncContextManager[ContainerSession]:
        """Run a command in a container for the duration of the block, beside its program.

        :raises NotRunningError: if the container does not run here.
        :raises StartError: on entering the block, if the command cannot be executed.
        """
        return self._worker_of(pod).session(container, command)

    async def connect(self, pod: ObjectKey, port: int) -> Connection:
        """Connect to a port of a pod; raises like :meth:`PodWorker.connect`."""
        return await self._worker_of(pod).connect(port)

    def _worker_of(self, pod: ObjectKey) -> PodWorker:
        worker = self._worker(pod)
        if worker is None:
            raise NotRunningError(f'pod "{pod.name}" is not on this node yet')
        return worker

    def _worker(self, pod: ObjectKey) -> PodWorker | None:
        # The latest of that name: the clean-up of a predecessor may still be running.
        found = [worker for worker in self._workers.values() if worker.pod.key == pod]
        return found[-1] if found else None

    def _on_pod_change(
        self, change: Change[NodePod], context: NodeContext, group: asyncio.TaskGroup
    ) -> None:
        old, pod = change.old, change.new
        if old is not None and (pod is None or pod.metadata.uid != old.metadata.uid):
            if worker := self._workers.get(old.metadata.uid):
                worker.object_removed()
        if pod is None or pod.spec.node_name != self.options.name:
            return
        uid = pod.metadata.uid
        if worker := self._workers.get(uid):
            worker.update(pod)
            return
        if self._shutting_down:
            return
        worker = self._workers[uid] = PodWorker(pod, context)
        task = group.create_task(worker.run(), name=f"pod {pod.key}")
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._workers.pop(uid))
        task.add_done_callback(self._tasks.discard)

    def _on_content_change(self, kind: str, change: Change[Object]) -> None:
        if change.new is not None and not change.initial:
            for worker in self._workers.values():
                worker.content_changed(kind, change.new.key)

    async def _register(self, address: str, devices: Mapping[str, Sized]) -> None:
        body = node_object(
            self.options.name, address, self.clock.now(), self.options.node_labels, devices
        )
        with suppress(AlreadyExistsError):
            await self._client.create(NODES, "", body)
        key = ObjectKey("", self.options.name)
        await self._client.patch(NODES, key, {"status": body["status"]}, subresource="status")

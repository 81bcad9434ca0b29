"""The embedded cluster: an API server, a scheduler, a Job controller and a node in one process.

All files live in a run directory that only its owner may read; it is removed with the cluster
unless the caller chose it. Of other controllers only the pod garbage collector is included: the
others connect as to any cluster.
"""

import asyncio
import datetime
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import yaml
from yarl import URL

from dlctl.api.meta import PODS, ObjectKey
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver import status
from dlctl.local.apiserver.endpoints.execs import PodExecOptions
from dlctl.local.apiserver.endpoints.log_requests import LogRequest
from dlctl.local.apiserver.server import ApiServer, serve
from dlctl.local.apiserver.storage.journal import Journal
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.data_directory import DataDirectory
from dlctl.local.job_controller.job_controller import JobController
from dlctl.local.node.agent.sandboxes import Network, StartError
from dlctl.local.node.api_access import ApiAccess
from dlctl.local.node.containers.devices import DEVICE_RESOURCES
from dlctl.local.node.containers.exec_sessions import ContainerSession, ExecCommand, NotRunningError
from dlctl.local.node.containers.logs import LogOptions
from dlctl.local.node.interrupted_pods import interrupted_pod
from dlctl.local.node.kubelet import Kubelet, KubeletOptions, LogUnavailableError
from dlctl.local.node.network.connections import Connection
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.pod_garbage_collector import PodGarbageCollector, PodGcTiming
from dlctl.local.node.scheduler import Scheduler
from dlctl.local.private_file import write_private_file
from dlctl.local.run_directory import temporary_run_directory
from dlctl.tasks import unwrap_exception_groups

USER_AGENT: Final = "dlctl-node"
_START_TIMEOUT_S: Final = 60.0


class EmbeddedCluster:
    """A cluster for the duration of an ``async with`` block; no process of it is left afterwards.

    Exceptions of the block are raised as they are, not in a group. A node that fails cancels the
    block, and its error is raised instead.
    """

    server: ApiServer
    node: Kubelet
    network: Network
    run_dir: Path

    def __init__(
        self,
        options: KubeletOptions | None = None,
        *,
        run_dir: Path | None = None,
        data: DataDirectory | None = None,
        port: int = 0,
        tls: bool = True,
        pod_gc_timing: PodGcTiming | None = None,
    ) -> None:
        self._options = options or KubeletOptions()
        self._kept_dir = run_dir
        self._data = data
        self._port = port
        self._tls = tls
        self._pod_gc_timing = pod_gc_timing or PodGcTiming()
        self._running = self._run()

    async def __aenter__(self) -> Self:
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._running.__aexit__(kind, error, traceback)

    @property
    def kubeconfig_path(self) -> Path:
        """Return the path of a kubeconfig, readable only by its owner because of the token."""
        return self.run_dir / "kubeconfig"

    def config(self, namespace: str = "default") -> ClusterConfig:
        """Return the configuration with which a client of this process reaches the API server."""
        return self.server.config(namespace)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        with unwrap_exception_groups():
            async with AsyncExitStack() as stack:
                self.run_dir = stack.enter_context(_directory(self._kept_dir))
                self.server = await self._serve(stack)
                content = yaml.safe_dump(self.server.kubeconfig())
                await asyncio.to_thread(write_private_file, self.kubeconfig_path, content)
                client = await stack.enter_async_context(
                    Client(self.config(), user_agent=USER_AGENT)
                )
                self.node = Kubelet(client, self.run_dir, self._options, api=_access(self.server))
                scheduler = Scheduler(
                    client,
                    self.node.pods,
                    self._options.name,
                    self.node.clock,
                    devices=DEVICE_RESOURCES if self._options.hand_out_gpus else (),
                )
                jobs = JobController(client, self.node.pods, self.node.clock)
                collector = PodGarbageCollector(
                    PodApi(client),
                    self.node.pods,
                    scheduler.nodes,
                    self.node.clock,
                    self._pod_gc_timing,
                )
                sources = self.server.subresources
                sources.log_source = self._log
                sources.exec_source = self._exec
                sources.port_forward_source = self._connect
                async with asyncio.TaskGroup() as group:
                    parts = [
                        group.create_task(self.node.run(), name="node"),
                        group.create_task(scheduler.run(), name="scheduler"),
                        group.create_task(jobs.run(), name="job controller"),
                        group.create_task(collector.run(), name="pod garbage collector"),
                    ]
                    await self._wait_until_ready()
                    if self.node.sockets is not None:
                        await self.server.listen_on(self.node.sockets.api.dup())
                    yield
                    for part in parts:
                        part.cancel()

    async def _serve(self, stack: AsyncExitStack) -> ApiServer:
        """Start the API server, with what the data directory has kept."""
        data = self._data
        if data is None:
            return await stack.enter_async_context(serve(port=self._port, tls=self._tls))
        journal = stack.enter_context(Journal.open(data.journal))
        # A port that somebody else has taken meanwhile is no reason not to start.
        port = self._port or (data.port if _is_free(data.port) else 0)
        server = await stack.enter_async_context(
            serve(port=port, tls=self._tls, identity=data.identity(), journal=journal)
        )
        data.keep_port(URL(server.url).port or 0)
        _end_interrupted_pods(server.objects)
        return server

    async def _wait_until_ready(self) -> None:
        async with asyncio.timeout(_START_TIMEOUT_S):
            await self.node.ready.wait()
        assert self.node.network is not None, "a node that is ready knows its network"
        self.network = self.node.network

    def _log(self, request: LogRequest) -> AsyncIterator[bytes]:
        query = LogOptions(
            previous=request.previous,
            follow=request.follow,
            timestamps=request.timestamps,
            since=self._since(request),
            tail_lines=request.tail_lines,
            limit_bytes=request.limit_bytes,
        )
        try:
            return self.node.logs(
                ObjectKey(request.namespace, request.pod), request.container, query
            )
        except LogUnavailableError as reason:
            raise status.bad_request(str(reason)) from reason

    def _since(self, request: LogRequest) -> datetime.datetime | None:
        if request.since_s is None:
            return request.since_time
        return self.node.clock.now() - datetime.timedelta(seconds=request.since_s)

    @asynccontextmanager
    async def _exec(self, request: PodExecOptions) -> AsyncIterator[ContainerSession]:
        key = ObjectKey(request.namespace, request.pod)
        command = ExecCommand(request.command, stdin=request.stdin, tty=request.tty)
        try:
            async with self.node.session(key, request.container, command) as session:
                yield session
        except (NotRunningError, StartError) as reason:
            message = f"error executing command in container: {reason}"
            raise status.internal_error(message) from reason

    async def _connect(self, pod: ObjectKey, port: int) -> Connection:
        try:
            return await self.node.connect(pod, port)
        except (NotRunningError, StartError) as reason:
            raise status.internal_error(str(reason)) from reason


def _access(server: ApiServer) -> ApiAccess | None:
    """Return how programs of this machine reach the server; None without TLS: no tokens then."""
    url = URL(server.url)
    if server.ca_pem is None or url.host is None or url.port is None:
        return None
    return ApiAccess(url.host, url.port, server.ca_pem)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _end_interrupted_pods(objects: Objects) -> None:
    """Mark the pods that ran when the last cluster of the directory ended: no program is left."""
    for stored in objects.storage.objects(PODS):
        ended = interrupted_pod(stored.decoded(PODS), objects.clock.now())
        if ended is not None:
            objects.storage.update(PODS, stored, ended)


@contextmanager
def _directory(kept: Path | None) -> Iterator[Path]:
    if kept is None:
        with temporary_run_directory() as path:
            yield path
    else:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield kept

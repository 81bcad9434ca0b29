"""A whole cluster for tests in one event loop: API server, fake kubelet, user and controllers.

For an event loop that compacts time (``pytest.mark.looptime``): the constants are those of
production, and minutes pass in milliseconds. ``real_harness`` does the same with a real cluster, in
real time. Nothing here asserts anything about the product.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, EVENTS, PODS, SERVICES, UID, ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import kind_crds
from dlctl.dialects.kinds import kind_of_api_version
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, NotFoundError
from dlctl.kube.write_fence import MayWrite
from dlctl.leaderelection.leadership import Leadership, NoLeaderElection
from dlctl.leaderelection.lease_lock import LeaseLostError
from dlctl.local.apiserver.server import serve
from dlctl.local.job_controller.job_controller import JobController
from dlctl.local.node.api_types import NodePod
from dlctl.manager import Manager
from dlctl.metrics import Metrics
from dlctl.options import Options
from tests.builders import KINDS
from tests.support.fake_kubelet import FakeKubelet
from tests.support.history import History
from tests.support.outcomes import Outcome, Script, script_of
from tests.support.running_controller import RunningController
from tests.support.server import Server
from tests.support.timing import LoopClock, tick_on_read

NAMESPACE: Final = "default"
_POLL_S: Final = 0.02
_LOOK_S: Final = 5.0


@attrs.frozen
class WaitTimes:
    """Durations of waiting.

    Without a write for ``quiet_s``, the cluster has settled. Changes that have not come
    after ``patience_s`` never will. Long waits are cut to ``lapse_s``.
    """

    quiet_s: float = 30.0
    patience_s: float = 600.0
    max_advance_s: float = float("inf")


@attrs.define(eq=False)
class ClusterHarness:
    """The cluster; reads are never older than the last thing awaited here."""

    server: Server
    user: Client
    node: FakeKubelet
    history: History
    kinds: Sequence[Kind]
    options: Options
    clock: Clock
    _tasks: asyncio.TaskGroup
    namespace: str = NAMESPACE
    wait_times: WaitTimes = attrs.field(factory=WaitTimes)
    _controllers: list[RunningController] = attrs.field(init=False, factory=list)
    _numbers: Iterator[int] = attrs.field(init=False, factory=itertools.count)
    _job_controller: asyncio.Task[None] | None = attrs.field(init=False, default=None)

    def key(self, name: str = "linear") -> ObjectKey:
        return ObjectKey(self.namespace, name)

    def start(
        self,
        *,
        kinds: Iterable[Kind] | None = None,
        leadership: Leadership | None = None,
        user_agent: str = "dlctl",
    ) -> RunningController:
        """Start a controller, which leads at once unless its ``leadership`` says otherwise.

        It ends without an error when it loses its lease.
        """
        leadership = leadership or NoLeaderElection()
        client = self.client(user_agent, leadership.may_write)
        manager = Manager(
            client,
            list(kinds or self.kinds),
            options=self.options,
            metrics=Metrics(),
            clock=self.clock,
            leadership=leadership,
        )
        stop = asyncio.Event()

        async def run() -> None:
            async with client:
                with suppress(LeaseLostError):
                    await manager.run(stop)

        task = self._tasks.create_task(run(), name=f"controller {next(self._numbers)}")
        running = RunningController(task, manager, stop, self.namespace)
        self._controllers.append(running)
        return running

    def client(self, user_agent: str, may_write: MayWrite | None = None) -> Client:
        return Client(self.server.config(), user_agent=user_agent, may_write=may_write)

    async def start_job_controller(self) -> None:
        """Run batch/v1 Jobs from now on; a real cluster does so all the time."""
        client = Client(self.server.config(), user_agent="kube-controller-manager")
        pods = Informer(client, PODS, NodePod, clock=self.clock)
        controller = JobController(client, pods, self.clock)

        async def run() -> None:
            async with client, asyncio.TaskGroup() as group:
                group.create_task(pods.run(), name="pods of jobs")
                group.create_task(controller.run(), name="job controller")

        self._job_controller = self._tasks.create_task(run(), name="job controller")

    async def kill_all(self) -> None:
        if self._job_controller is not None:
            self._job_controller.cancel()
        for running in self._controllers:
            await running.kill()
        self._controllers.clear()

    async def install(self, kind: Kind) -> None:
        """Install the CRD of a kind, unless another test that shares the server has."""
        for definition in kind_crds(kind):
            with suppress(AlreadyExistsError):
                await self.user.create(CRDS, "", definition)
        async with asyncio.timeout(self.wait_times.patience_s):
            for resource in (kind.resource, *kind.scalers):
                await self._served(resource)

    async def _served(self, resource: Resource) -> None:
        while True:
            try:
                await self.user.list(resource, JSON, namespace=self.namespace)
            except NotFoundError:
                await asyncio.sleep(_POLL_S)
            else:
                return

    async def submit(
        self,
        manifest: Mapping[str, Any],
        outcomes: Mapping[str, Sequence[Outcome]] | None = None,
        *,
        last_replica: str = "",
        script: Script | None = None,
    ) -> JSON:
        """Create a job with a script for its replicas; an invalid one has no script."""
        kept = {"name", "annotations"}
        metadata = {name: v for name, v in manifest["metadata"].items() if name in kept}
        job = {**manifest, "metadata": metadata}
        key = self.key(job["metadata"]["name"])
        if script is None and outcomes is not None:
            script = script_of(manifest, outcomes, last_replica=last_replica)
        if script is not None:
            self.node.scripts[key] = script
        kind = kind_of_api_version(self.kinds, job["apiVersion"], job["kind"])
        assert kind is not None
        return await self._created(kind, job)

    async def _created(self, kind: Kind, job: JSON) -> JSON:
        created = await self.user.create(kind.resource, self.namespace, job, JSON)
        await self.sync()
        return created

    def objects(self, resource: Resource) -> list[JSON]:
        return [s.decoded(resource) for s in self.server.storage.objects(resource, self.namespace)]

    def job(self, name: str = "linear") -> JSON:
        """Return the job with this name, of any kind."""
        for kind in self.kinds:
            stored = self.server.storage.get(kind.resource, self.key(name))
            if stored is not None:
                return stored.decoded(kind.resource)
        raise LookupError(name)

    def status(self, name: str = "linear") -> JSON:
        return dict(self.job(name).get("status") or {})

    def phase(self, name: str = "linear") -> str:
        """Return the phase of a job; Kubeflow's statuses keep it in ``status.dlctl``."""
        status = self.status(name)
        return str(status.get("phase") or (status.get("dlctl") or {}).get("phase") or "")

    def owned(self, resource: Resource, job: JSON) -> list[JSON]:
        uid = job["metadata"]["uid"]
        return [obj for obj in self.objects(resource) if owner_uid(obj) == uid]

    def events(self, name: str = "linear") -> dict[str, str]:
        """Return the last message of a job's events by reason."""
        told = [e for e in self.objects(EVENTS) if e["involvedObject"]["name"] == name]
        return {event["reason"]: event["message"] for event in told}

    def pods(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.objects(PODS)]

    def services(self) -> list[str]:
        return [service["metadata"]["name"] for service in self.objects(SERVICES)]

    def condition(self, type_: str, name: str = "linear") -> str:
        """Return the message of a condition that is true, or an empty string."""
        stated = self.status(name).get("conditions") or ()
        holding = [c for c in stated if c["type"] == type_ and c["status"] == "True"]
        return str(holding[0]["message"]) if holding else ""

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until the predicate holds; on a timeout, fail with a dump."""
        try:
            async with asyncio.timeout(self.wait_times.patience_s):
                while not holds():
                    self.history.changed.clear()
                    # Not everything that is awaited is written to the server.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            await self.history.changed.wait()
        except TimeoutError:
            raise AssertionError(f"it did not come to hold:\n{self.dump()}") from None
        await self.sync()

    async def advance(self, seconds: float) -> None:
        """Let this many seconds pass, or fewer on a real cluster."""
        await asyncio.sleep(min(seconds, self.wait_times.max_advance_s))
        await self.sync()

    def require_embedded(self, why: str) -> None:
        """Skip the rest of the test on a real cluster, which other tests share."""

    def is_busy(self) -> bool:
        """Return whether a part is at work: never where time passes only when all wait."""
        return False

    async def sync(self) -> None:
        """Wait until earlier writes are visible here; a storage is always up to date."""

    async def ended(self, name: str = "linear", *, phase: str = "Done") -> JSON:
        """Wait until a job ends; return its status."""
        await self.until(lambda: self.phase(name) == phase)
        return self.status(name)

    async def settled(self) -> None:
        """Wait until nothing has been written for a while, and nothing is about to be."""
        async with asyncio.timeout(100 * self.wait_times.quiet_s):
            revision = -1
            while revision != self.server.storage.revision or self.is_busy():
                revision = self.server.storage.revision
                await asyncio.sleep(self.wait_times.quiet_s)
                await self.sync()

    def dump(self) -> str:
        """Return jobs, pods, services and events in readable form."""
        found: list[JSON] = []
        for kind in self.kinds:
            jobs = self.objects(kind.resource)
            found += [{"job": j["metadata"]["name"], "status": j.get("status")} for j in jobs]
        for pod in self.objects(PODS):
            found.append({"pod": pod["metadata"]["name"], "status": pod.get("status")})
        found += [{"service": s["metadata"]["name"]} for s in self.objects(SERVICES)]
        found += [{"event": e["reason"], "message": e["message"]} for e in self.objects(EVENTS)]
        return yaml.safe_dump_all(found, sort_keys=False)


# Starts a cluster, with the arguments of :func:`start_cluster`.
StartCluster = Callable[..., AbstractAsyncContextManager[ClusterHarness]]


@asynccontextmanager
async def start_cluster(
    *,
    kinds: Sequence[Kind] = KINDS,
    options: Options | None = None,
    installed: Sequence[Kind] | None = None,
    window: int = 20_000,
) -> AsyncIterator[ClusterHarness]:
    """Serve a cluster with the CRDs of all kinds, or of the given ones."""
    tick_on_read()
    try:
        async with AsyncExitStack() as stack:
            whole = await _built(stack, kinds, options or Options(), window)
            for kind in kinds if installed is None else installed:
                await whole.install(kind)
            yield whole
    except BaseExceptionGroup as failures:
        # A failed test raises its own error, not a group.
        raise first_of(failures) from None


async def _built(
    stack: AsyncExitStack, kinds: Sequence[Kind], options: Options, window: int
) -> ClusterHarness:
    clock = LoopClock()
    server = await stack.enter_async_context(serve(tls=False, clock=clock, window=window))
    user = await stack.enter_async_context(Client(server.config(), user_agent="user"))
    kubelet = await stack.enter_async_context(Client(server.config(), user_agent="kubelet"))
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    node = FakeKubelet(server, kubelet, clock)
    nodes = tasks.create_task(node.run(), name="fake kubelet")
    stack.callback(nodes.cancel)
    whole = ClusterHarness(server, user, node, History(server), kinds, options, clock, tasks)
    stack.push_async_callback(whole.kill_all)
    return whole


def first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


def owner_uid(obj: JSON) -> UID:
    owners = obj["metadata"].get("ownerReferences") or ()
    return UID(next((o["uid"] for o in owners if o.get("controller")), ""))

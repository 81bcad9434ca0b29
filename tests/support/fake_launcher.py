"""Launchers without processes: they respond to exec requests as the test's script says.

They know the commands of the membership package and nothing of the sender. Anything that must never
happen to a launcher is recorded, whoever did it.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Literal, NamedTuple

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, ObjectKey
from dlctl.api.objects.scalers import Script
from dlctl.clock import Clock
from dlctl.local.apiserver.endpoints.execs import ExecSession, PodExecOptions
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from dlctl.reconcilers.membership import exec_requests
from tests.support.fake_exec import FakeExecSession
from tests.support.fake_pods import is_running

FaultType = Literal["hang", "fail", "refuse", "cut"]
HOSTFILE: Final = "/etc/edl/hostfile"
_PODS: Final = table_of(PODS)
_COMMANDS: Final = {
    exec_requests.write_files({}, 0).command[2]: "deliver",
    exec_requests.probe_workers([]).command[2]: "probe",
    exec_requests.list_connections().command[2]: "users",
    exec_requests.run_script(Script("x"), []).command[2]: "run",
}
_HEADER: Final = "  sl  local_address rem_address   st tx_queue rx_queue\n"


@attrs.define
class ExecFault:
    """A fault of the next exec requests; an empty field matches all.

    With ``after``, the request is executed all the same.
    """

    type: FaultType
    command: str = ""
    pod: str = ""
    after: bool = False
    times: float = 1


@attrs.frozen
class Program:
    """A user's script: its exit code, and its duration."""

    code: int = 0
    lasts_s: float = 0.0


class ScriptRun(NamedTuple):
    """One run of a script: its start, and its environment."""

    at: float
    path: str
    variables: Sequence[str]
    workers: Sequence[str]


@attrs.define(eq=False)
class LauncherContainer:
    """The inside of one launcher's pod."""

    files: dict[str, str]
    # Edition of the files; a late delivery of an older one is ignored.
    generation: int = 0
    # When it learned which workers to disconnect from.
    notified_at: dict[str, float] = attrs.field(factory=dict)
    # The hosts in its file, with the time of each change.
    listed: list[tuple[float, tuple[str, ...]]] = attrs.field(factory=list)
    ended: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        lines = self.files.get(HOSTFILE, "").splitlines()
        return tuple(line.partition(":")[0] for line in lines)


@attrs.define(eq=False)
class FakeLaunchers:
    """The launchers of a server's jobs; ``violations`` lists what must not have happened to
    them."""

    server: ApiServer
    clock: Clock
    # How long after its start a worker is reachable by name; default: at once.
    reachable_after_s: dict[str, float] = attrs.field(factory=dict)
    # How long a launcher keeps using a worker after it was notified.
    disconnects_s: float = 0.0
    # When a launcher connects to workers late, by the clock.
    dials_at: dict[str, float] = attrs.field(factory=dict)
    # Workers whose processes died; launchers avoid them from then on.
    avoided: set[str] = attrs.field(factory=set)
    programs: dict[str, Program] = attrs.field(factory=dict)
    faults: list[ExecFault] = attrs.field(factory=list)
    # The nodes whose pods nobody reaches.
    silent_nodes: Collection[str] = ()
    runs: list[ScriptRun] = attrs.field(factory=list)
    commands: list[tuple[float, str, str]] = attrs.field(factory=list)
    violations: list[str] = attrs.field(factory=list)
    containers: dict[str, LauncherContainer] = attrs.field(factory=dict)
    _started: dict[ObjectKey, float] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.server.storage.observers.append(self._on_change)
        self.server.subresources.exec_source = self._source

    def container(self, job: str = "linear", namespace: str = "default") -> LauncherContainer:
        """Return the inside of a job's current launcher."""
        stored = self.server.storage.get(PODS, ObjectKey(namespace, f"{job}-launcher"))
        assert stored is not None
        return self.containers[stored.uid]

    def uses(self, container: LauncherContainer) -> set[str]:
        """Return the workers that a launcher is using."""
        now = self.clock.monotonic()
        clung_to = {
            name for name, at in container.notified_at.items() if now < at + self.disconnects_s
        }
        late = {name for name, at in self.dials_at.items() if now < at}
        used = {*container.hosts, *clung_to} - self.avoided - late
        return set() if container.ended else used

    def _on_change(self, change: StorageEvent) -> None:
        if change.table != _PODS or change.new is None:
            if change.table == _PODS and change.old is not None:
                self._started.pop(change.old.key, None)
                self._end(change.old.uid)
            return
        pod = change.new.decoded(PODS)
        key, role = change.new.key, pod["metadata"].get("labels", {}).get("training-job-role")
        begun, runs = (pod.get("status") or {}).get("containerStatuses"), is_running(pod)
        if runs and key not in self._started:
            self._started[key] = self.clock.monotonic()
            if role == "launcher":
                self.containers[change.new.uid] = self._begin(key)
        elif begun and not runs:
            self._started.pop(key, None)
            self._end(change.new.uid)
        told_before = change.old is not None and change.old.meta.deletion_timestamp
        # Tests remove pods at once to see the consequences.
        graceful = (
            change.new.meta.deletion_timestamp and change.new.meta.deletion_grace_period_seconds
        )
        if graceful and not told_before and runs:
            self._note_worker_end(key, pod)

    def _note_worker_end(self, key: ObjectKey, pod: JSON) -> None:
        """Record the end of a worker that its launcher is using."""
        job = pod["metadata"].get("labels", {}).get("training-job-name", "")
        stored = self.server.storage.get(PODS, ObjectKey(key.namespace, f"{job}-launcher"))
        container = self.containers.get(stored.uid) if stored else None
        leaving = stored is not None and stored.meta.deletion_timestamp
        if container is not None and not leaving and key.name in self.uses(container):
            self.violations.append(f"{key.name} was deleted in use at {self.clock.monotonic():.3f}")

    def _begin(self, launcher: ObjectKey) -> LauncherContainer:
        """Do what the launcher's init container does: copy the hosts from the ConfigMap."""
        job = launcher.name.removesuffix("-launcher")
        stored = self.server.storage.get(
            CONFIG_MAPS, ObjectKey(launcher.namespace, f"{job}-config")
        )
        data = stored.decoded(CONFIG_MAPS)["data"] if stored else {}
        container = LauncherContainer({HOSTFILE: data.get("hostfile", "")})
        container.listed.append((self.clock.monotonic(), container.hosts))
        return container

    def _end(self, uid: str) -> None:
        if uid in self.containers:
            self.containers[uid].ended = True

    def _source(self, asked: PodExecOptions) -> AbstractAsyncContextManager[ExecSession]:
        return self._session(asked)

    @asynccontextmanager
    async def _session(self, asked: PodExecOptions) -> AsyncIterator[ExecSession]:
        key = ObjectKey(asked.namespace, asked.pod)
        stored = self.server.storage.get(PODS, key)
        container = self.containers.get(stored.uid) if stored else None
        if container is None or container.ended:
            raise StatusError(500, "InternalError", "container not found")
        order = _COMMANDS[asked.command[2]]
        self.commands.append((self.clock.monotonic(), order, asked.pod))
        if self._is_silent(key):
            raise StatusError(500, "InternalError", "error dialing backend: no route to host")
        trouble = self._next_fault(order, asked.pod)
        if trouble and trouble.type == "refuse":
            raise StatusError(500, "InternalError", "the runtime does not answer")
        session = FakeExecSession()
        play = self._play(order, container, asked, session, trouble)
        task = asyncio.get_running_loop().create_task(play, name=f"{order} in {key}")
        try:
            yield session
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _next_fault(self, order: str, pod: str) -> ExecFault | None:
        for trouble in self.faults:
            if trouble.command in ("", order) and trouble.pod in ("", pod) and trouble.times > 0:
                trouble.times -= 1
                return trouble
        return None

    async def _play(
        self,
        order: str,
        container: LauncherContainer,
        asked: PodExecOptions,
        session: FakeExecSession,
        trouble: ExecFault | None,
    ) -> None:
        acts: Mapping[str, Callable[..., Awaitable[int]]] = {
            "deliver": self._write_files,
            "probe": self._probe,
            "users": self._check_in_use,
            "run": self._run,
        }
        code = 0
        if trouble is None or trouble.after:
            code = await acts[order](container, asked, session)
        if trouble is None:
            session.end(code)
        elif trouble.type == "fail":
            session.end(1, said="injected fault")
        elif trouble.type == "cut":
            session.break_off()
        # Otherwise it hangs until its client gives up.

    async def _write_files(
        self, container: LauncherContainer, asked: PodExecOptions, session: FakeExecSession
    ) -> int:
        generation, *words = asked.command[4:]
        files = {}
        for path, count in zip(words[::2], words[1::2], strict=True):
            lines = [await session.line() for _ in range(int(count))]
            files[path] = "".join(f"{line}\n" for line in lines)
        if 0 < int(generation) < container.generation:
            session.write_stdout("superseded\n")
            return 0
        container.generation = int(generation)
        before = set(container.hosts)
        container.files |= files
        now = self.clock.monotonic()
        for host in before - set(container.hosts):
            container.notified_at[host] = now
        for host in set(container.hosts) - before:
            container.notified_at.pop(host, None)
            if not self._is_reachable(ObjectKey(asked.namespace, host)):
                self.violations.append(f"{host} was listed before it answered, at {now:.3f}")
        if before != set(container.hosts):
            container.listed.append((now, container.hosts))
        return 0

    async def _probe(
        self, container: LauncherContainer, asked: PodExecOptions, session: FakeExecSession
    ) -> int:
        hosts = [await session.line() for _ in range(int(asked.command[4]))]
        session.write_stdout("by ssh\n")
        for host in hosts:
            ok = self._is_reachable(ObjectKey(asked.namespace, host))
            session.write_stdout(f"ok {host}\n" if ok else f"no {host} Connection refused\n")
        return 0

    def _is_reachable(self, worker: ObjectKey) -> bool:
        started = self._started.get(worker)
        wait_s = self.reachable_after_s.get(worker.name, 0.0)
        if started is None or self._is_silent(worker):
            return False
        return self.clock.monotonic() >= started + wait_s

    def _is_silent(self, pod: ObjectKey) -> bool:
        stored = self.server.storage.get(PODS, pod)
        return (
            stored is not None and stored.decoded(PODS)["spec"].get("nodeName") in self.silent_nodes
        )

    async def _check_in_use(
        self, container: LauncherContainer, asked: PodExecOptions, session: FakeExecSession
    ) -> int:
        used = sorted(self.uses(container))
        session.write_stdout(_HEADER)
        for name in used:
            stored = self.server.storage.get(PODS, ObjectKey(asked.namespace, name))
            status = stored.decoded(PODS).get("status", {}) if stored else {}
            if address := status.get("podIP"):
                session.write_stdout(_row(address))
        session.write_stdout("\n")
        words = ["horovodrun\0--min-np\0001\0", *(f"ssh\0-p\00022\0{name}\0" for name in used)]
        for number, process in enumerate(words):
            session.write_stdout(f"\n==> /proc/{number + 1}/cmdline <==\n{process}")
        return 0

    async def _run(
        self, container: LauncherContainer, asked: PodExecOptions, session: FakeExecSession
    ) -> int:
        seconds, path, *variables = asked.command[4:]
        workers = (await session.line()).split(",")
        self.runs.append(ScriptRun(self.clock.monotonic(), path, variables, workers))
        program = self.programs.get(path, Program())
        await asyncio.sleep(min(program.lasts_s, float(seconds)))
        return 124 if program.lasts_s > float(seconds) else program.code


def _row(address: str) -> str:
    digits = ipaddress.IPv4Address(address).packed[::-1].hex().upper()
    return f"   0: 0100007F:D431 {digits}:0016 01 00000000:00000000\n"

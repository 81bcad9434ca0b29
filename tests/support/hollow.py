"""A node without processes: it binds pods and reports what a script says becomes of them.

It learns of pods from what observes the server, and writes over HTTP like a kubelet. It knows
nothing of controllers. In a real cluster it stands behind ``realnode``.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

import attrs

from dlctl.api.job import Replica
from dlctl.api.meta import PODS, UID, ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, InvalidError, NotFoundError
from dlctl.local.apiserver.changes import Change, Stored, table_of
from tests.support.fates import RUNS_ON, Deleted, Drained, Evicted, Exit, Fate, Part, RunsOn, Script
from tests.support.server import Server

JSON = dict[str, Any]
USER_AGENT: Final = "kubelet"
NODE: Final = "hollow"
POD_NET: Final = "10.0.0.0/8"
_PODS: Final = table_of(PODS)
# What is said to one who speaks of a pod by a UID that its name does not have any more: the real
# server finds a change of an immutable field in it.
_GONE: Final = (NotFoundError, ConflictError, InvalidError)


@attrs.define(eq=False)
class Life:
    """One pod on the node, until it is gone."""

    key: ObjectKey
    uid: UID
    pod: JSON
    script: Script | None
    replica: Replica
    started: str = ""
    restarts: int = 0
    address: str = "10.0.0.1"
    ungated: asyncio.Event = attrs.field(factory=asyncio.Event)
    leaving: asyncio.Event = attrs.field(factory=asyncio.Event)
    gone: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Nothing holds it back from being placed.
    released: asyncio.Event = attrs.field(factory=asyncio.Event)
    # How its program has terminated, once it has for good.
    terminated: JSON = attrs.field(factory=dict)
    sidecars_ended: asyncio.Event = attrs.field(factory=asyncio.Event)

    @property
    def part(self) -> Part:
        return self.script.parts[self.replica] if self.script else Part((RUNS_ON,))

    def runs_again(self, code: int) -> bool:
        """Tell whether the kubelet runs a container again in its pod that has exited so."""
        policy = self.pod["spec"].get("restartPolicy")
        return bool(policy == "Always" or (code and policy == "OnFailure"))


@attrs.define(eq=False)
class HollowNode:
    """Lives the lives of all pods of a server.

    ``scripts`` go by namespace and name of the job; the pods of jobs without one run on. A run
    takes ``run_s`` seconds, a restart in place as long again.
    """

    server: Server
    client: Client
    clock: Clock
    scripts: dict[ObjectKey, Script] = attrs.field(factory=dict)
    run_s: float = 0.05
    # Where pods are placed that come from now on.
    name: str = NODE
    # Set while there is room for pods; those that come otherwise wait to be placed.
    room: asyncio.Event = attrs.field(factory=asyncio.Event)
    # A pod's last container has terminated so long before its phase says so.
    phase_lag_s: float = 1.0
    # The names of pods that run and are not ready.
    unready: set[str] = attrs.field(factory=set)
    # The names of containers that run on beside a program that has exited.
    sidecars: set[str] = attrs.field(factory=set)
    _addresses: Iterator[IPv4Address] = attrs.field(init=False, factory=IPv4Network(POD_NET).hosts)
    _lives: dict[str, Life] = attrs.field(init=False, factory=dict)
    _arrived: asyncio.Queue[Life] = attrs.field(init=False, factory=asyncio.Queue)
    _moved: asyncio.Condition = attrs.field(init=False, factory=asyncio.Condition)

    def __attrs_post_init__(self) -> None:
        self.room.set()
        self.server.storage.observers.append(self._notice)

    async def run(self) -> None:
        """Run pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                life = await self._arrived.get()
                group.create_task(self._live(life), name=f"pod {life.key}")

    async def finish(self, uid: str, code: int = 0) -> None:
        """Have a pod end now, whatever was to become of it; without a code, well."""
        await self._end(self._lives[uid], code, "")

    def finish_sidecars(self, uid: str) -> None:
        """Have the containers end that run on in a pod whose program has exited."""
        self._lives[uid].sidecars_ended.set()

    def _notice(self, change: Change) -> None:
        if change.table != _PODS:
            return
        stored = change.new or change.old
        assert stored is not None
        life = self._lives.get(stored.uid)
        if change.new is None:
            if life is not None:
                life.gone.set()
                life.leaving.set()
                life.ungated.set()
                life.released.set()
        elif change.old is None:
            self._lives[stored.uid] = life = self._life(change.new)
            self._look(life, change.new)
            self._arrived.put_nowait(life)
        elif life is not None:
            self._look(life, change.new)

    def _look(self, life: Life, stored: Stored) -> None:
        if stored.meta.deletion_timestamp:
            life.leaving.set()
        if life.released.is_set():
            return
        if life.leaving.is_set() or not stored.decoded(PODS)["spec"].get("schedulingGates"):
            life.released.set()

    def _life(self, stored: Stored) -> Life:
        pod = stored.decoded(PODS)
        owner = next(iter(pod["metadata"].get("ownerReferences") or ()), {"name": ""})
        replica = replica_of(stored.key.name, owner["name"])
        script = self.scripts.get(ObjectKey(stored.key.namespace, owner["name"]))
        if script is not None and replica not in script.parts:
            script = None
        address = str(next(self._addresses))
        life = Life(stored.key, UID(stored.uid), pod, script, replica, address=address)
        if not _gates(stored):
            life.ungated.set()
        return life

    async def _live(self, life: Life) -> None:
        try:
            await self._start(life)
            while not life.leaving.is_set():
                if not await self._next_run(life):
                    break
            await life.leaving.wait()
            if not life.gone.is_set():
                await self._stop(life)
        except _GONE:
            # Deleted under the report: there is nobody to report on.
            return
        finally:
            del self._lives[life.uid]

    async def _start(self, life: Life) -> None:
        await life.released.wait()
        await self._wait_for_room(life)
        if life.leaving.is_set():
            return
        if not life.pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
            binding = Resource("", "v1", f"pods/{life.key.name}/binding", "Binding")
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": life.key.name, "uid": life.uid},
                "target": target,
            }
            await self.client.create(binding, life.key.namespace, body)
        life.started = self._now()
        await self._report(life, "Running", {"running": {"startedAt": life.started}})

    async def _wait_for_room(self, life: Life) -> None:
        """Wait until there is room, or until the pod is deleted."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(event.wait()) for event in (self.room, life.leaving)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    async def _next_run(self, life: Life) -> bool:
        """Meet the next fate; tell whether the pod runs on with another one."""
        part = life.part
        fate = part.fates[part.played] if part.played < len(part.fates) else RUNS_ON
        part.began = part.played + 1
        await self._wake_others()
        if fate == RUNS_ON:
            return False
        await self._wait_for_turn(life)
        if life.leaving.is_set():
            # Not met: it is for the pod that comes after this one.
            return False
        goes_on = await self._meet(life, fate)
        part.played += 1
        await self._wake_others()
        return goes_on

    async def _wait_for_turn(self, life: Life) -> None:
        await asyncio.sleep(self.run_s)
        if life.script is None or life.script.may_end(life.replica):
            return
        script = life.script

        async def turn() -> None:
            async with self._moved:
                await self._moved.wait_for(lambda: script.may_end(life.replica))

        await self._unless_leaving(life, turn())

    async def _wake_others(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    async def _meet(self, life: Life, fate: Fate) -> bool:
        match fate:
            case Exit(code, reason) if life.runs_again(code):
                await self._restart(life, code, reason)
                return True
            case Exit(code, reason):
                await self._end(life, code, reason)
            case Evicted(code):
                terminated = self._terminated(life, code, "Error" if code else "Completed")
                await self._report(life, "Running", terminated)
                await self._unless_leaving(life, asyncio.sleep(self.phase_lag_s))
                await self._report(
                    life,
                    "Failed",
                    terminated,
                    reason="Evicted",
                    message="The node was low on resource: memory.",
                )
            case Deleted():
                await self.client.delete(PODS, life.key, uid=life.uid)
            case Drained():
                await self._drain(life)
            case RunsOn():
                pass
        return False

    async def _end(self, life: Life, code: int, reason: str) -> None:
        """Report a program's end as the kubelet does: first the container, later the phase."""
        life.terminated = self._terminated(life, code, reason)
        await self._report(life, "Running", life.terminated)
        if self._sidecars_of(life):
            await self._unless_leaving(life, life.sidecars_ended.wait())
            if not life.leaving.is_set():
                await self._report(life, "Running", life.terminated)
        await self._unless_leaving(life, asyncio.sleep(self.phase_lag_s))
        if not life.leaving.is_set():
            await self._report(life, _final_phase(life.terminated), life.terminated)

    async def _unless_leaving(self, life: Life, happens: Coroutine[Any, Any, Any]) -> None:
        """Wait for something, but no longer than until the pod is told to go."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(happens), group.create_task(life.leaving.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    def _sidecars_of(self, life: Life) -> set[str]:
        return self.sidecars.intersection(c["name"] for c in life.pod["spec"]["containers"])

    async def _drain(self, life: Life) -> None:
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        body = {"metadata": {"uid": life.uid}, "status": {"conditions": [target]}}
        await self.client.patch(PODS, life.key, body, subresource="status")
        await self.client.delete(PODS, life.key, uid=life.uid)

    async def _restart(self, life: Life, code: int, reason: str) -> None:
        ended = self._terminated(life, code, reason)
        await self._report(life, "Running", ended)
        await asyncio.sleep(self.run_s)
        life.restarts += 1
        life.started = self._now()
        running = {"running": {"startedAt": life.started}}
        await self._report(life, "Running", running, last=ended)

    async def _stop(self, life: Life) -> None:
        """Stop a pod that was told to go, and let it go."""
        await asyncio.sleep(self.run_s)
        if life.gone.is_set():
            return
        try:
            if not _finished(self.server, life.key):
                life.sidecars_ended.set()
                ended = life.terminated or self._terminated(life, 143, "Error")
                await self._report(life, _final_phase(ended), ended)
            await self.client.delete(PODS, life.key, uid=life.uid, grace_period_s=0)
        except _GONE:
            return

    async def _report(
        self, life: Life, phase: str, state: JSON, *, last: JSON | None = None, **said: str
    ) -> None:
        runs = "running" in state
        running = {"running": {"startedAt": life.started}}
        sidecars = set() if life.sidecars_ended.is_set() else self._sidecars_of(life)
        container: JSON = {"restartCount": life.restarts, "lastState": last or {}, "imageID": ""}
        names = [(c["name"], c.get("image", "")) for c in life.pod["spec"]["containers"]]
        ready = runs and life.key.name not in self.unready
        status = {
            "phase": phase,
            **self._placed(life),
            # Another one of a node that is drained stays as it is.
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [
                {
                    "name": name,
                    "image": image,
                    "ready": runs or name in sidecars,
                    "state": running if name in sidecars else state,
                    **container,
                }
                for name, image in names
            ],
            **said,
        }
        body = {"metadata": {"uid": life.uid}, "status": status}
        await self.client.patch(PODS, life.key, body, subresource="status")

    def _placed(self, life: Life) -> JSON:
        """Return what a status says of when and where the pod was started."""
        return {"startTime": life.started, "podIP": life.address}

    def _terminated(self, life: Life, code: int, reason: str) -> JSON:
        return {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Error" if code else "Completed"),
                "startedAt": life.started,
                "finishedAt": self._now(),
            }
        }

    def _now(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def replica_of(name: str, job: str) -> Replica:
    """Return which replica a pod's name speaks of."""
    own = name.removeprefix(f"{job[:40]}-")
    rest = own.split("-")
    return Replica(rest[0], int(rest[-1])) if rest[-1].isdecimal() else Replica(own, 0)


def is_running(pod: Mapping[str, Any]) -> bool:
    """Tell whether a container of a pod runs; its phase may say so a little longer."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (status.get("state") or {}) for status in statuses)


def _final_phase(terminated: JSON) -> str:
    return "Failed" if terminated["terminated"]["exitCode"] else "Succeeded"


def _gates(stored: Stored) -> object:
    return stored.decoded(PODS)["spec"].get("schedulingGates")


def _finished(server: Server, key: ObjectKey) -> bool:
    stored = server.storage.get(PODS, key)
    if stored is None:
        return True
    phase = (stored.decoded(PODS).get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed")

"""A kubelet without processes: binds pods and reports the outcomes that a script lists.

It observes the server to learn of pods, and writes over HTTP like a kubelet. It knows nothing of
controllers. In a real cluster it backs ``real_node``.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, UID, ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, InvalidError, NotFoundError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, StoredObject, table_of
from tests.support.fake_pods import FakePod, replica_of
from tests.support.outcomes import (
    KEEPS_RUNNING,
    Deleted,
    Drained,
    Evicted,
    Exit,
    KeepsRunning,
    Outcome,
    Script,
)
from tests.support.server import Server

USER_AGENT: Final = "kubelet"
NODE_NAME: Final = "fake-node"
POD_NET: Final = "10.0.0.0/8"
_PODS: Final = table_of(PODS)
# Errors for a pod whose name now belongs to another UID: the real server sees a change of an
# immutable field.
_GONE: Final = (NotFoundError, ConflictError, InvalidError)


@attrs.define(eq=False)
class FakeKubelet:
    """Runs the fake lives of all pods of a server.

    ``scripts`` are by namespace and name of the job; pods of jobs without one keep running. A run
    takes ``run_s`` seconds, and so does a restart in place.
    """

    server: Server
    client: Client
    clock: Clock
    scripts: dict[ObjectKey, Script] = attrs.field(factory=dict)
    run_s: float = 0.15
    # The node of pods that start from now on.
    name: str = NODE_NAME
    # Returns the node of a pod; None if none suits it. By default, ``name``.
    choose_node: Callable[[JSON], str | None] | None = None
    # Set while there is room for pods; otherwise new pods stay unscheduled.
    has_room: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Delay between the termination of a pod's last container and its terminal phase.
    phase_lag_s: float = 1.0
    # The same for evictions, which are one report if it is 0.
    eviction_lag_s: float = 1.0
    # Names of pods that run but are not ready.
    unready: set[str] = attrs.field(factory=set)
    # Names of containers that keep running beside a program that has exited.
    sidecars: set[str] = attrs.field(factory=set)
    _addresses: Iterator[IPv4Address] = attrs.field(init=False, factory=IPv4Network(POD_NET).hosts)
    _pods: dict[str, FakePod] = attrs.field(init=False, factory=dict)
    _arrived: asyncio.Queue[FakePod] = attrs.field(init=False, factory=asyncio.Queue)
    _progressed: asyncio.Condition = attrs.field(init=False, factory=asyncio.Condition)

    def __attrs_post_init__(self) -> None:
        self.has_room.set()
        self.server.storage.observers.append(self._on_change)

    async def run(self) -> None:
        """Run pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                life = await self._arrived.get()
                group.create_task(self._run_pod(life), name=f"pod {life.key}")

    def placement(self) -> JSON:
        """Return the fields of a pod's spec that bind it to this node: where all are, none."""
        return {}

    async def finish(self, uid: str, code: int = 0) -> None:
        """Terminate a pod now, whatever its script says; the default exit code is 0."""
        await self._end(self._pods[uid], code, "")

    async def evict(self, uid: str) -> None:
        """Evict a pod now, whatever its script says."""
        await self._play(self._pods[uid], Evicted())

    def disconnect(self, uid: str) -> None:
        """Let a pod go on without being stopped, as on a node that is silent."""
        if uid in self._pods:
            self._pods[uid].gone.set()

    def reconnect(self, uid: str) -> None:
        if uid in self._pods:
            self._pods[uid].gone.clear()

    def finish_sidecars(self, uid: str) -> None:
        """Terminate the remaining containers of a pod whose program has exited."""
        self._pods[uid].sidecars_ended.set()

    def _on_change(self, change: StorageEvent) -> None:
        if change.table != _PODS:
            return
        stored = change.new or change.old
        assert stored is not None
        life = self._pods.get(stored.uid)
        if change.new is None:
            if life is not None:
                life.gone.set()
                life.leaving.set()
                life.released.set()
        elif change.old is None:
            self._pods[stored.uid] = life = self._fake_pod(change.new)
            self._update(life, change.new)
            self._arrived.put_nowait(life)
        elif life is not None:
            self._update(life, change.new)

    def _update(self, fake_pod: FakePod, stored: StoredObject) -> None:
        if stored.meta.deletion_timestamp:
            fake_pod.leaving.set()
        if fake_pod.released.is_set():
            return
        if fake_pod.leaving.is_set() or not stored.decoded(PODS)["spec"].get("schedulingGates"):
            fake_pod.released.set()

    def _fake_pod(self, stored: StoredObject) -> FakePod:
        pod = stored.decoded(PODS)
        owner = next(iter(pod["metadata"].get("ownerReferences") or ()), {"name": ""})
        replica = replica_of(stored.key.name, owner["name"])
        script = self.scripts.get(ObjectKey(stored.key.namespace, owner["name"]))
        if script is not None and replica not in script.parts:
            script = None
        address = str(next(self._addresses))
        return FakePod(stored.key, UID(stored.uid), pod, script, replica, address=address)

    async def _run_pod(self, fake_pod: FakePod) -> None:
        try:
            await self._start(fake_pod)
            while not fake_pod.leaving.is_set():
                if not await self._next_run(fake_pod):
                    break
            await fake_pod.leaving.wait()
            if not fake_pod.gone.is_set():
                await self._stop(fake_pod)
        except _GONE:
            # Deleted during the report: there is nothing left to report on.
            return
        finally:
            del self._pods[fake_pod.uid]

    async def _start(self, fake_pod: FakePod) -> None:
        await fake_pod.released.wait()
        await self._wait_for_room(fake_pod)
        if fake_pod.leaving.is_set():
            return
        node = self.choose_node(fake_pod.pod) if self.choose_node else self.name
        if node is None:
            await self._report_unschedulable(fake_pod)
            return
        if not fake_pod.pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = Resource("", "v1", f"pods/{fake_pod.key.name}/binding", "Binding")
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": fake_pod.key.name, "uid": fake_pod.uid},
                "target": target,
            }
            await self.client.create(binding, fake_pod.key.namespace, body)
        fake_pod.started = self._now()
        await self._report(fake_pod, "Running", {"running": {"startedAt": fake_pod.started}})

    async def _report_unschedulable(self, fake_pod: FakePod) -> None:
        """Report that no node suits a pod, and wait until it is deleted."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity.",
            "lastTransitionTime": self._now(),
        }
        body = {"metadata": {"uid": fake_pod.uid}, "status": {"conditions": [condition]}}
        await self.client.patch(PODS, fake_pod.key, body, subresource="status")
        await fake_pod.leaving.wait()

    async def _wait_for_room(self, fake_pod: FakePod) -> None:
        """Wait until there is room, or until the pod is deleted."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(event.wait()) for event in (self.has_room, fake_pod.leaving)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    async def _next_run(self, fake_pod: FakePod) -> bool:
        """Play the next outcome; return whether the pod keeps running with another one."""
        part = fake_pod.part
        outcome = (
            part.outcomes[part.finished_count]
            if part.finished_count < len(part.outcomes)
            else KEEPS_RUNNING
        )
        part.started_count = part.finished_count + 1
        await self._wake_others()
        if outcome == KEEPS_RUNNING:
            return False
        await self._wait_for_turn(fake_pod)
        if fake_pod.leaving.is_set():
            # Not played: it is left for the pod's successor.
            return False
        goes_on = await self._play(fake_pod, outcome)
        part.finished_count += 1
        await self._wake_others()
        return goes_on

    async def _wait_for_turn(self, fake_pod: FakePod) -> None:
        await fake_pod.pause(self.run_s)
        if fake_pod.script is None or fake_pod.script.may_end(fake_pod.replica):
            return
        script = fake_pod.script

        async def turn() -> None:
            async with self._progressed:
                await self._progressed.wait_for(lambda: script.may_end(fake_pod.replica))

        await self._unless_leaving(fake_pod, turn())

    async def _wake_others(self) -> None:
        async with self._progressed:
            self._progressed.notify_all()

    async def _play(self, fake_pod: FakePod, outcome: Outcome) -> bool:
        match outcome:
            case Exit(code, reason) if fake_pod.restarts_in_place(code):
                await self._restart(fake_pod, code, reason)
                return True
            case Exit(code, reason):
                await self._end(fake_pod, code, reason)
            case Evicted(code):
                terminated = self._terminated(fake_pod, code, "Error" if code else "Completed")
                if self.eviction_lag_s:
                    await self._report(fake_pod, "Running", terminated)
                    await self._unless_leaving(fake_pod, fake_pod.pause(self.eviction_lag_s))
                await self._report(
                    fake_pod,
                    "Failed",
                    terminated,
                    reason="Evicted",
                    message="The node was low on resource: memory.",
                )
            case Deleted():
                await self.client.delete(PODS, fake_pod.key, uid=fake_pod.uid)
            case Drained():
                await self._drain(fake_pod)
            case KeepsRunning():
                pass
        return False

    async def _end(self, fake_pod: FakePod, code: int, reason: str) -> None:
        """Report an exit as the kubelet does: first the container, later the phase."""
        fake_pod.terminated = self._terminated(fake_pod, code, reason)
        await self._report(fake_pod, "Running", fake_pod.terminated)
        if self._sidecars_of(fake_pod):
            await self._unless_leaving(fake_pod, fake_pod.sidecars_ended.wait())
            if not fake_pod.leaving.is_set():
                await self._report(fake_pod, "Running", fake_pod.terminated)
        await self._unless_leaving(fake_pod, fake_pod.pause(self.phase_lag_s))
        if not fake_pod.leaving.is_set():
            await self._report(fake_pod, _final_phase(fake_pod.terminated), fake_pod.terminated)

    async def _unless_leaving(self, fake_pod: FakePod, happens: Coroutine[Any, Any, Any]) -> None:
        """Wait for something, but only until the pod is being deleted."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(happens), group.create_task(fake_pod.leaving.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    def _sidecars_of(self, fake_pod: FakePod) -> set[str]:
        return self.sidecars.intersection(c["name"] for c in fake_pod.pod["spec"]["containers"])

    async def _drain(self, fake_pod: FakePod) -> None:
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        body = {"metadata": {"uid": fake_pod.uid}, "status": {"conditions": [target]}}
        await self.client.patch(PODS, fake_pod.key, body, subresource="status")
        await self.client.delete(PODS, fake_pod.key, uid=fake_pod.uid)

    async def _restart(self, fake_pod: FakePod, code: int, reason: str) -> None:
        ended = self._terminated(fake_pod, code, reason)
        await self._report(fake_pod, "Running", ended)
        await fake_pod.pause(self.run_s)
        fake_pod.restarts += 1
        fake_pod.started = self._now()
        running = {"running": {"startedAt": fake_pod.started}}
        await self._report(fake_pod, "Running", running, last=ended)

    async def _stop(self, fake_pod: FakePod) -> None:
        """Stop and remove a pod that is being deleted."""
        await fake_pod.pause(self.run_s)
        if fake_pod.gone.is_set():
            return
        try:
            # One that was deleted before it was started has no container to report.
            if fake_pod.started and not _finished(self.server, fake_pod.key):
                fake_pod.sidecars_ended.set()
                ended = fake_pod.terminated or self._terminated(fake_pod, 143, "Error")
                await self._report(fake_pod, _final_phase(ended), ended)
            await self.client.delete(PODS, fake_pod.key, uid=fake_pod.uid, grace_period_s=0)
        except _GONE:
            return

    async def _report(
        self, fake_pod: FakePod, phase: str, state: JSON, *, last: JSON | None = None, **said: str
    ) -> None:
        runs = "running" in state
        running = {"running": {"startedAt": fake_pod.started}}
        sidecars = set() if fake_pod.sidecars_ended.is_set() else self._sidecars_of(fake_pod)
        container: JSON = {
            "restartCount": fake_pod.restarts,
            "lastState": last or {},
            "imageID": "",
        }
        names = [(c["name"], c.get("image", "")) for c in fake_pod.pod["spec"]["containers"]]
        ready = runs and fake_pod.key.name not in self.unready
        status = {
            "phase": phase,
            **self._placed(fake_pod),
            # The conditions of a drained pod are kept.
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
        body = {"metadata": {"uid": fake_pod.uid}, "status": status}
        await self.client.patch(PODS, fake_pod.key, body, subresource="status")

    def _placed(self, fake_pod: FakePod) -> JSON:
        """Return the status fields about when and where the pod was started."""
        return {"startTime": fake_pod.started, "podIP": fake_pod.address}

    def _terminated(self, fake_pod: FakePod, code: int, reason: str) -> JSON:
        return {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Error" if code else "Completed"),
                "startedAt": fake_pod.started,
                "finishedAt": self._now(),
            }
        }

    def _now(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _final_phase(terminated: JSON) -> str:
    return "Failed" if terminated["terminated"]["exitCode"] else "Succeeded"


def _finished(server: Server, key: ObjectKey) -> bool:
    stored = server.storage.get(PODS, key)
    if stored is None:
        return True
    phase = (stored.decoded(PODS).get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed")

"""Several controllers that hand a lease over while all of them fail, and the server too.

Only the holder of the lease writes, and no status takes back what another leader has written.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

import attrs

from dlctl.api.meta import EVENTS, LEASES, ObjectKey
from dlctl.dialects.kind import Kind
from dlctl.kube.errors import NotFoundError
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import kind_of
from tests.convergence.cases import Case, case_of
from tests.convergence.random_faults import delay_writes
from tests.convergence.runs import check_same, outcome
from tests.support.harness import ClusterHarness
from tests.support.history import WRITES
from tests.support.loop_election import LoopElection
from tests.support.running_controller import RunningController
from tests.support.timing import LoopClock

JSON = dict[str, Any]
_LEASE: Final = ObjectKey("default", "dlctl")
_MACHINES: Final = 3
# Small: whether an exit is an eviction is only awaited if its time is near.
_SKEWS: Final = (0.0, 0.0, -1.0, 1.0)
_LEASE_PATH: Final = "leases.coordination.k8s.io"


@attrs.define(eq=False)
class Candidate:
    """A controller, from its start to its end."""

    name: str
    election: LoopElection
    controller: RunningController


@attrs.define(eq=False)
class Play:
    """The controllers of a cluster; ``violations`` lists what none of them may do."""

    cluster: ClusterHarness
    dice: random.Random
    kinds: Sequence[Kind]
    over: asyncio.Event = attrs.field(factory=asyncio.Event)
    candidates: dict[int, Candidate] = attrs.field(factory=dict)
    # The writes of each former leader when it was seen to hold the lease no more.
    written: dict[str, int] = attrs.field(factory=dict)
    violations: list[str] = attrs.field(factory=list)
    started: int = 0

    def watch(self, change: StorageEvent) -> None:
        if change.table == table_of(LEASES):
            old, new = (
                one.decoded(LEASES)["spec"].get("holderIdentity") if one else ""
                for one in (change.old, change.new)
            )
            # A lease that is deleted is still that of its holder, who creates it again.
            if old and new != old and change.new is not None:
                self.written[old] = self.writes(old)
            if new in self.written:
                self.violations.append(f"{new} leads again")
        for kind in self.kinds:
            if change.table == table_of(kind.resource) and change.old and change.new:
                old_job, new_job = (o.decoded(kind.resource) for o in (change.old, change.new))
                self.violations += _regressions(old_job, new_job)

    def writes(self, name: str) -> int:
        return sum(
            count
            for audited, count in self.cluster.server.audit.items()
            if audited.user_agent == name and audited.verb in WRITES
        )

    def leader(self) -> str:
        stored = self.cluster.server.storage.get(LEASES, _LEASE)
        spec = stored.decoded(LEASES)["spec"] if stored else {}
        return str(spec.get("holderIdentity") or "")

    def pick(self) -> Candidate:
        """Return a controller, more often than not the leader."""
        running = [one for one in self.candidates.values() if not one.controller.task.done()]
        leading = [one for one in running if one.name == self.leader()]
        return self.dice.choice(running + 2 * leading)

    def start(self) -> Candidate:
        self.started += 1
        name = f"dlctl/{self.started}"
        self.cluster.clock = LoopClock(self.dice.choice(_SKEWS))
        client = self.cluster.client(f"{name}/lease")
        election = LoopElection(client, _LEASE, name, self.cluster.clock)
        controller = self.cluster.start(kinds=self.kinds, leadership=election, user_agent=name)
        return Candidate(name, election, controller)


async def run_chaos(seed: int) -> None:
    """Compare the outcome of jobs with that under one controller and without faults."""
    case = attrs.evolve(case_of(seed), kills=())
    undisturbed = await outcome(case.undisturbed())
    check_same(case, await outcome(case, control=_hand_over), undisturbed)


async def _hand_over(cluster: ClusterHarness, case: Case, _: float) -> None:
    served = {(job.manifest["apiVersion"], job.manifest["kind"]) for job in case.jobs}
    kinds = [kind_of(*one) for one in sorted(served)]
    play = Play(cluster, random.Random(case.seed), kinds)
    cluster.server.storage.observers.append(play.watch)
    async with asyncio.TaskGroup() as group:
        machines = [group.create_task(_run(play, number)) for number in range(_MACHINES)]
        delaying = group.create_task(delay_writes(cluster, play.dice))
        await _act(play)
        await delaying
        await cluster.until(lambda: all(cluster.phase(j.key.name) == "Done" for j in case.jobs))
        await asyncio.sleep(30)
        play.over.set()
        for candidate in play.candidates.values():
            candidate.controller.stop_asked.set()
        await asyncio.wait(machines)
    for name, count in play.written.items():
        late = play.writes(name) - count
        assert not late, f"{name} wrote {late} times after it had lost the lease"
    assert not play.violations, play.violations
    # Each leader may repeat what its predecessor has said of each pod.
    often = play.started + cluster.history.created.total()
    repeated = [e for e in cluster.objects(EVENTS) if e.get("count", 1) > often]
    assert not repeated, repeated
    cluster.clock = LoopClock()
    cluster.start()


def _regressions(old: JSON, new: JSON) -> list[str]:
    """Return what a status takes back."""
    before, after = (_facts(job) for job in (old, new))
    lost = [f"{r}: {n}" for r, n in before["failures"].items() if after["failures"].get(r, 0) < n]
    if before["end"] and before["end"] != after["end"]:
        lost.append(f"{before['end']} became {after['end']}")
    return lost


def _facts(job: JSON) -> JSON:
    status = job.get("status") or {}
    own = status if "phase" in status else status.get("dlctl") or {}
    holding = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    restarts = own.get("restarts") or {}
    return {
        "end": sorted(holding & {"Succeeded", "Failed"}),
        "failures": {r: one.get("failures") or 0 for r, one in restarts.items()},
    }


async def _run(play: Play, number: int) -> None:
    """Start a controller whenever the last one has ended, as a kubelet does."""
    while not play.over.is_set():
        await asyncio.sleep(play.dice.choice((0.0, 1.0, 20.0)))
        candidate = play.candidates[number] = play.start()
        if play.over.is_set():
            candidate.controller.stop_asked.set()
        await asyncio.wait([candidate.controller.task])


async def _act(play: Play) -> None:
    for _ in range(play.dice.randint(2, 10)):
        await asyncio.sleep(play.dice.choice((0.1, 1.0, 5.0, 20.0)) * play.dice.random())
        try:
            await play.dice.choice(_ACTS)(play)
        except (IndexError, NotFoundError):
            # None is running, or there is no lease.
            continue


async def _kill(play: Play) -> None:
    play.pick().election.kill()


async def _stop(play: Play) -> None:
    play.pick().controller.stop_asked.set()


async def _cut_off(play: Play) -> None:
    """Let the next requests of a controller fail, those for its lease or all."""
    agent = play.pick().name + play.dice.choice(("", "/lease"))
    moments: Sequence[Literal["before", "after"]] = ("before", "after")
    reset, times = play.dice.choice(moments), play.dice.choice((3, 10, 40))
    play.cluster.server.faults.add(Fault(user_agent=agent, reset=reset, times=times))


async def _slow_down(play: Play) -> None:
    delay_s, times = play.dice.uniform(1, 12), play.dice.randint(1, 6)
    agent = play.pick().name
    fault = Fault(user_agent=agent, resource=_LEASE_PATH, delay_s=delay_s, times=times)
    play.cluster.server.faults.add(fault)


async def _delete_lease(play: Play) -> None:
    await play.cluster.user.delete(LEASES, _LEASE)


_ACTS: Final[Sequence[Callable[[Play], Awaitable[None]]]] = (
    _kill, _kill, _stop, _cut_off, _cut_off, _slow_down, _delete_lease
)  # fmt: skip

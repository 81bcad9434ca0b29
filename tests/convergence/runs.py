"""Runs a case and returns its outcome in a form in which two runs can be compared."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES
from dlctl.options import Options
from tests.convergence.cases import Case, Kill
from tests.convergence.job_case import JobCase
from tests.support.fake_pods import replica_of
from tests.support.harness import ClusterHarness, StartCluster, start_cluster

# How often events alone may interrupt the quiet period.
LATE_EVENTS: Final = 3


@attrs.frozen
class Stage:
    """Where cases run, and how long faults and the quiet period last.

    Pauses between attempts are long enough to matter, and shorter than any fault.
    """

    world: StartCluster
    options: Options
    faults_s: float
    rest_s: float


COMPACTED: Final = Stage(
    start_cluster,
    Options(restart_backoff_s=1.0, restart_backoff_cap_s=4.0),
    faults_s=20.0,
    rest_s=30.0,
)


# Runs the controllers of a case until the last of them goes on.
Control = Callable[[ClusterHarness, Case, float], Awaitable[None]]


async def work_through_kills(cluster: ClusterHarness, case: Case, patience_s: float) -> None:
    for kill in case.kills:
        controller = cluster.start()
        await moment(cluster, kill, patience_s)
        await controller.kill()
        await asyncio.sleep(kill.down_s)
    cluster.start()


async def outcome(
    case: Case, stage: Stage = COMPACTED, control: Control = work_through_kills
) -> JSON:
    """Check the invariants, and return the remaining objects of a case."""
    async with stage.world(options=stage.options) as cluster:
        for job in case.jobs:
            await cluster.submit(job.manifest, script=job.script())
        async with asyncio.TaskGroup() as group:
            faults = group.create_task(_arm(cluster, case, stage.faults_s))
            await control(cluster, case, stage.faults_s)
            await faults
        for job in case.jobs:
            await cluster.ended(job.key.name)
        await check_rest(cluster, stage.rest_s)
        _check_history(cluster, case)
        return {job.key.name: _left(cluster, job) for job in case.jobs}


def check_same(case: Case, disturbed: JSON, undisturbed: JSON) -> None:
    """Check that nothing but unobserved deletions distinguishes the remaining objects of two runs.

    A pod that is deleted and gone before a controller observes it leaves no trace of itself or of
    its restarts: while none runs, or while the watches lag behind its own writes.
    """
    for job in case.jobs:
        restarts, expected = (run[job.key.name]["restarts"] for run in (disturbed, undisturbed))
        for replica in job.deleted():
            count = restarts.pop(replica, {}).get("failures") or 0
            # At most as often as it happened.
            assert count <= (expected.pop(replica, {}).get("failures") or 0)
    assert yaml.safe_dump(disturbed) == yaml.safe_dump(undisturbed)


async def _arm(cluster: ClusterHarness, case: Case, lasting_s: float) -> None:
    started = cluster.clock.monotonic()
    for at_s, fault in case.faults:
        await asyncio.sleep(max(0.0, started + at_s - cluster.clock.monotonic()))
        cluster.server.faults.add(fault)
    if case.faults:
        await asyncio.sleep(lasting_s)
    cluster.server.faults.clear()


async def moment(cluster: ClusterHarness, kill: Kill, patience_s: float) -> None:
    storage = cluster.server.storage
    revision = storage.revision + kill.revisions
    try:
        async with asyncio.timeout(patience_s):
            while storage.revision < revision:
                cluster.history.changed.clear()
                await cluster.history.changed.wait()
    except TimeoutError:
        return
    for _ in range(kill.turns):
        await asyncio.sleep(0)


async def check_rest(cluster: ClusterHarness, rest_s: float) -> None:
    """Check that neither this controller nor a restarted one has anything left to do."""
    written = await quiet(cluster, rest_s)
    await cluster.kill_all()
    cluster.start()
    await asyncio.sleep(rest_s)
    more = cluster.history.writes() - written
    assert not more, f"a new controller finds something to write: {more}"


async def quiet(cluster: ClusterHarness, rest_s: float) -> Counter[tuple[str, str]]:
    """Wait for a quiet period, and return the writes until then."""
    more: Counter[tuple[str, str]] = Counter()
    for _ in range(LATE_EVENTS):
        await cluster.settled()
        written = cluster.history.writes()
        await asyncio.sleep(rest_s)
        more = cluster.history.writes() - written
        if not more:
            return written
        # Events delayed by a fault are retried for a limited time.
        if any(resource != "events" for _, resource in more):
            break
    raise AssertionError(f"it goes on writing after the end: {more}")


def _check_history(cluster: ClusterHarness, case: Case) -> None:
    history = cluster.history
    assert not history.violations
    for job in case.jobs:
        uid = cluster.job(job.key.name)["metadata"]["uid"]
        wanted = job.pods()
        # A create may take effect late, and its pod is deleted then.
        counts = history.created - history.created_late
        made = {str(m.replica): count for m, count in counts.items() if m.job == uid}
        assert made == wanted, f"pods of {job.key.name}: {made} were made, not {wanted}"


def _left(cluster: ClusterHarness, job: JobCase) -> JSON:
    name = job.key.name
    obj = cluster.job(name)
    status = cluster.status(name)
    # In Kubeflow's map form, dlctl's own state is separate.
    own = status if "phase" in status else status["dlctl"]
    failure = own.get("failure") or {}
    restarts = own.get("restarts") or {}
    kept = ("failures", "tries", "reason", "exitCode")
    return {
        "phase": own["phase"],
        "state": status.get("state"),
        "failure": {k: failure[k] for k in ("replica", "reason", "exitCode") if k in failure},
        "restarts": {r: {k: one.get(k) for k in kept} for r, one in restarts.items()},
        "replicas": _without_states(status["replicaStatuses"]),
        "completed": own.get("completedIndexes"),
        "last": status["conditions"][-1]["type"],
        "conditions": sorted(c["type"] for c in status["conditions"] if c["status"] == "True"),
        "pods": sorted(
            (str(replica_of(pod["metadata"]["name"], name)), pod["status"]["phase"])
            for pod in cluster.owned(PODS, obj)
        ),
        "services": sorted(
            str(replica_of(service["metadata"]["name"], name))
            for service in cluster.owned(SERVICES, obj)
        ),
    }


def _without_states(replicas: Any) -> Any:
    if isinstance(replicas, dict):
        return replicas
    return [{k: v for k, v in replica.items() if k != "state"} for replica in replicas]

"""Gangs with a failure policy on real nodes: each loss has a verdict, and training goes on.

Between two attempts there is a barrier: no pod of one is ever beside a pod of another.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from e2e import install
from e2e.cluster.control_plane import NODE_LOST_S
from e2e.kubectl import Kubectl
from e2e.suite import failures, mpi
from e2e.testbed import ClusterTestbed
from e2e.watching import ChangeRecord, watching

# From the verdict to the first pod of the next attempt; its back-off comes on top.
_RESTART_S: Final = 10.0
_BACKOFF_S: Final = 1.0
_FORCE_AFTER_S: Final = 5.0
_SLACK_S: Final = 60.0
_SETTINGS: Final = {
    "DLCTL_RESTART_BACKOFF": f"{_BACKOFF_S:g}",
    "DLCTL_FORCE_DELETE_AFTER": f"{_FORCE_AFTER_S:g}",
}
_SPOT_NOTICE: Final = "aws-node-termination-handler/spot-itn"

Measured = Callable[[str, object], None]


@pytest.fixture(scope="module", autouse=True)
def settings(controller: Kubectl) -> Iterator[None]:
    """Controllers that restart soon, and force-delete pods of lost nodes."""
    with install.with_settings(controller, _SETTINGS):
        yield


@pytest.fixture
def nodes(cluster: Kubectl) -> Iterator[tuple[str, str]]:
    """Two real nodes, ready before and after: one that stays, and one for faults."""
    found = [
        node["metadata"]["name"]
        for node in cluster.items("nodes")
        if node["metadata"]["labels"].get("type") != "kwok"
    ]
    if len(found) < 2:
        pytest.skip("a gang needs two nodes")
    yield found[0], found[1]
    cluster("wait", "nodes", *found, "--for=condition=Ready", "--timeout=90s", within_s=95)


@contextmanager
def gang(kubectl: Kubectl, keeps: str, **options: object) -> Iterator[ChangeRecord]:
    """Run a gang whose store is on a node; record its pods, and check that attempts never meet."""
    store = failures.start_store(kubectl, keeps)
    with watching(kubectl, "pods") as record:
        kubectl.apply(failures.gang(store, **options))  # type: ignore[arg-type]
        yield record
        assert not failures.overlaps(record)


def test_killed_rank_restarts_the_job_once(
    kubectl: Kubectl, testbed: ClusterTestbed, nodes: tuple[str, str], record_property: Measured
) -> None:
    with gang(kubectl, nodes[0]):
        victim = failures.until_trains(kubectl)[1]
        testbed.kill_pod(victim["metadata"]["uid"])
        pods = failures.until_trains(kubectl, attempt=1)
        record_property("seconds to the next attempt's first pod", restart_s(kubectl, pods))
        failures.until_succeeded(kubectl, within_s=_SLACK_S)
    first, second = failures.attempts(kubectl)
    assert (first["replica"], first["exitCode"]) == ("worker-1", 137)
    assert first["pod"] == victim["metadata"]["name"]
    assert "cause" not in second


def test_rank_beyond_its_memory_limit_is_out_of_memory(
    kubectl: Kubectl, nodes: tuple[str, str]
) -> None:
    limits = {"limits": {"memory": "96Mi"}}
    with gang(kubectl, nodes[0], resources=limits):
        victim = failures.until_trains(kubectl)[2]["metadata"]["name"]
        kubectl("exec", victim, "--", "sh", "-c", "echo 'bytearray(300 << 20)' >/tmp/fail")
        failures.until_trains(kubectl, attempt=1)
        failures.until_succeeded(kubectl, within_s=_SLACK_S)
    first, *_ = failures.attempts(kubectl)
    assert (first["cause"], first["replica"]) == ("OutOfMemory", "worker-2")
    assert first["confidence"] == "High"


def test_spot_notice_saves_a_checkpoint_and_moves_the_job(
    kubectl: Kubectl, cluster: Kubectl, nodes: tuple[str, str]
) -> None:
    stays, goes = nodes
    # Only the notice makes it save. The nodes do not stop their ranks at the same moment.
    with gang(kubectl, stays, save_every=1000, notices_s=10):
        failures.until_trains(kubectl)
        cluster("taint", "node", goes, f"{_SPOT_NOTICE}=true:NoSchedule")
        try:
            pods = failures.until_trains(kubectl, attempt=1)
        finally:
            cluster("taint", "node", goes, f"{_SPOT_NOTICE}-")
        assert {pod["spec"]["nodeName"] for pod in pods} == {stays}
        assert failures.resumed_after(kubectl) > 0
        failures.until_succeeded(kubectl, within_s=_SLACK_S)
    first, *_ = failures.attempts(kubectl)
    assert (first["cause"], first["node"]) == ("Preemption", goes)
    assert failures.status(kubectl)["dlctl"].get("countedRestarts", 0) == 0


def test_job_goes_on_elsewhere_after_a_node_is_lost(
    kubectl: Kubectl, testbed: ClusterTestbed, nodes: tuple[str, str], record_property: Measured
) -> None:
    stays, goes = nodes
    # Nothing closes the connections of a node without power: peers notice by a timeout.
    with gang(kubectl, stays, notices_s=60):
        members = failures.until_trains(kubectl)
        assert {pod["spec"]["nodeName"] for pod in members} == {stays, goes}
        began = time.monotonic()
        with testbed.powered_off(goes):
            within_s = NODE_LOST_S + _FORCE_AFTER_S + _SLACK_S
            pods = failures.until_trains(kubectl, attempt=1, within_s=within_s)
            took_s = time.monotonic() - began
            record_property("seconds from a node's death to the next attempt", round(took_s))
            assert {pod["spec"]["nodeName"] for pod in pods} == {stays}
            failures.until_succeeded(kubectl, within_s=_SLACK_S)
    first, *_ = failures.attempts(kubectl)
    assert (first["cause"], first["node"]) == ("Node", goes)


@pytest.mark.skipif(not mpi.IMAGE, reason="E2E_MPI_IMAGE is empty")
def test_lost_worker_of_an_mpijob_is_named(kubectl: Kubectl, testbed: ClusterTestbed) -> None:
    rank = f"sh -c 'echo rank on $(hostname); {mpi.AWAIT_GO}'"
    job = mpi.job(
        "mpi", f"mpirun --bind-to none -np 2 {rank}", launcherCreationPolicy="WaitForWorkersReady"
    )
    kubectl.apply(job)
    mpi.until_said(kubectl, "mpi", "rank on mpi-worker-", 2)
    victim = kubectl.get("pod", "mpi-worker-1")
    assert victim
    testbed.kill_pod(victim["metadata"]["uid"])

    def verdict() -> JSON | None:
        attempts = mpi.status(kubectl, "mpi").get("dlctl", {}).get("attempts") or [{}]
        return attempts[0] if "cause" in attempts[0] else None

    found = kubectl.until(verdict, within_s=_SLACK_S, what="a verdict")
    assert found["replica"] == "worker-1"


def restart_s(kubectl: Kubectl, pods: list[JSON]) -> float:
    """Return how long after the end of the first attempt the next one had a pod; check it."""
    ended = datetime.fromisoformat(failures.attempts(kubectl)[0]["endTime"])
    created = min(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods)
    took_s = (created - ended).total_seconds()
    assert took_s <= _RESTART_S + _BACKOFF_S
    return took_s

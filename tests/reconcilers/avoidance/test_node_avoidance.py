"""Which nodes a job avoids, in which order, and when it gives that up."""

import datetime
from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import UID
from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import Node
from dlctl.api.objects.pods import AVOIDED_NODES, Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Attempt, Cause
from dlctl.informers.handlers import Change
from dlctl.reconcilers.avoidance.dropped_avoidance import PATIENCE_S, with_dropped_avoidance
from dlctl.reconcilers.avoidance.node_avoidance import NodeAvoidance, with_avoidance_event
from dlctl.reconcilers.children.avoided_nodes import AvoidedNode
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.reconcilers.plan import Plan
from tests.builders import NOW, make_job, make_pod, observed_of
from tests.reconcilers.nodes.charged_jobs import ended, ledger_of
from tests.reconcilers.nodes.charged_jobs import job as stored_job


def job_with(*attempts: Attempt, uid: str = "mine", **status: Any) -> Job:
    job = make_job()
    return attrs.evolve(
        job, uid=UID(uid), status=attrs.evolve(job.status, attempts=attempts, **status)
    )


def nodes_with(**conditions: str) -> NodeTracker:
    """Return a cluster of six nodes, some of them with a condition."""
    tracker = NodeTracker(NodeSignals.of(draining=["Draining"], fault=["Sick"]))
    for letter in "abcdef":
        name = f"node-{letter}"
        type_ = conditions.get(letter)
        wire = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": f"host-{letter}"}},
            "status": {"conditions": [{"type": type_, "status": "True"}] if type_ else []},
        }
        tracker.update(Change(None, msgspec.convert(wire, Node)))
    return tracker


def avoided(
    job: Job, *charges: tuple[str, Attempt], count: int = 3, **conditions: str
) -> list[str]:
    jobs = [stored_job(uid, attempt) for uid, attempt in charges]
    avoidance = NodeAvoidance(ledger_of(*jobs), nodes_with(**conditions), count)
    return [node.name for node in avoidance.avoided_by(job)]


def test_job_avoids_the_node_that_its_own_attempt_charged() -> None:
    attempt = ended("node-a")
    assert avoided(job_with(attempt), ("mine", attempt)) == ["node-a"]
    assert avoided(job_with(uid="other"), ("mine", attempt)) == []


def test_all_jobs_avoid_a_node_that_two_have_charged() -> None:
    charges = [("1", ended("node-a")), ("2", ended("node-a")), ("1", ended("node-b"))]
    assert avoided(job_with(), *charges[:2]) == ["node-a"]


def test_own_nodes_come_first_then_the_most_charged_then_unhealthy_ones() -> None:
    own = ended("node-d", ago_s=100)
    charges = [("mine", own), *((uid, ended("node-a")) for uid in "12")]
    charges += [(uid, ended("node-b")) for uid in "345"]
    wanted = ["node-d", "node-b", "node-a", "node-c"]
    assert avoided(job_with(own), *charges, count=9, c="Sick") == wanted
    assert avoided(job_with(own), *charges, count=2, c="Sick") == wanted[:2]
    assert avoided(job_with(own), *charges, count=0, c="Sick") == []


def test_draining_node_is_avoided_by_the_job_whose_attempt_it_ended() -> None:
    drained = ended("node-a", Cause.PREEMPTION)
    assert avoided(job_with(drained), a="Draining") == ["node-a"]
    assert avoided(job_with(drained)) == []
    assert avoided(job_with(), a="Draining") == []


def test_further_nodes_that_the_job_left_are_avoided_while_they_are_draining() -> None:
    left = {"node-b": NOW, "node-c": NOW}
    drained = attrs.evolve(ended("node-a", Cause.PREEMPTION), drained_nodes=left)
    assert avoided(job_with(drained), a="Draining", b="Draining") == ["node-a", "node-b"]
    failed = attrs.evolve(ended("node-a", Cause.USER_CODE), drained_nodes=left)
    assert avoided(job_with(failed, drained), a="Draining", b="Draining") == ["node-a", "node-b"]


def test_nodes_at_fault_come_before_further_nodes_that_the_job_left() -> None:
    left = {"node-b": NOW, "node-c": NOW}
    own = attrs.evolve(ended("node-a", ago_s=100), drained_nodes=left)
    charges = [("mine", own), *((uid, ended("node-d")) for uid in "12")]
    conditions = {"b": "Draining", "c": "Draining", "e": "Sick"}
    wanted = ["node-a", "node-d", "node-e", "node-b", "node-c"]
    assert avoided(job_with(own), *charges, count=5, **conditions) == wanted
    assert avoided(job_with(own), *charges, count=3, **conditions) == wanted[:3]


def test_program_that_failed_on_an_unhealthy_node_does_not_make_it_an_own_node() -> None:
    failed = ended("node-b", Cause.USER_CODE)
    assert avoided(job_with(failed), a="Sick", b="Draining") == ["node-a"]


def test_not_all_nodes_of_a_cluster_are_avoided() -> None:
    every = dict.fromkeys("abcdef", "Sick")
    assert avoided(job_with(), count=9, **every) == []
    assert len(avoided(job_with(), count=5, **every)) == 5


def test_deleted_nodes_take_no_place_of_those_that_are_there() -> None:
    gone = [ended(f"gone-{number}", Cause.SCALE_DOWN) for number in range(6)]
    charges = [("mine", ended("gone-9")), *((uid, ended("node-a")) for uid in "12")]
    job = job_with(*gone, ended("gone-9"))
    tracker = nodes_with()
    for number in range(6):
        gone_node = msgspec.convert({"metadata": {"name": f"gone-{number}"}}, Node)
        tracker.update(Change(gone_node, None))
    ledger = ledger_of(*(stored_job(uid, attempt) for uid, attempt in charges))
    for count in (1, 3, 9):
        avoidance = NodeAvoidance(ledger, tracker, count)
        assert [node.name for node in avoidance.avoided_by(job)] == ["node-a"]


def test_charged_nodes_are_avoided_before_the_nodes_are_known() -> None:
    attempt = ended("node-a")
    avoidance = NodeAvoidance(ledger_of(stored_job("mine", attempt)), NodeTracker(), 3)
    assert [node.name for node in avoidance.avoided_by(job_with(attempt))] == ["node-a"]


def test_hostname_is_that_of_the_node() -> None:
    attempt = ended("node-a")
    avoidance = NodeAvoidance(ledger_of(stored_job("mine", attempt)), nodes_with(), 3)
    assert avoidance.avoided_by(job_with(attempt)) == [AvoidedNode("node-a", "host-a")]


def test_attempt_that_gave_up_avoiding_nodes_avoids_none() -> None:
    attempt = ended("node-a", ago_s=10)
    assert avoided(job_with(attempt, avoidance_dropped_at=NOW), ("mine", attempt)) == []


def test_event_names_avoided_nodes_before_the_first_pod_that_avoids_them() -> None:
    job, nodes = job_with(), [AvoidedNode("node-a", "host-a")]
    (note,) = with_avoidance_event(Plan(job.status), job, observed_of(job), nodes).action_notes
    assert note.reason.endswith("NodesAvoided")
    assert "node-a" in note.message
    existing = observed_of(job, waiting(job, 0))
    assert not with_avoidance_event(Plan(job.status), job, existing, nodes).action_notes


def waiting(job: Job, since_s: float, *, avoids: str = "node-a", reason: str = "") -> Pod:
    """Return a pod that the scheduler has not placed for some time."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason or "Unschedulable",
        "lastTransitionTime": (NOW - datetime.timedelta(seconds=since_s)).isoformat(),
    }
    metadata = {"annotations": {AVOIDED_NODES: avoids} if avoids else {}}
    return make_pod(
        job, Replica("worker", 0), phase="Pending", metadata=metadata, conditions=[condition]
    )


def planned(job: Job, *pods: Pod) -> Plan:
    return with_dropped_avoidance(Plan(job.status), job, observed_of(job, *pods), NOW)


def test_job_gives_up_avoiding_nodes_once_a_pod_has_waited_long_enough() -> None:
    job = job_with(phase=JobPhase.CREATING)
    early = planned(job, waiting(job, PATIENCE_S - 5))
    assert (early.status, early.requeue_after_s) == (job.status, 5)
    late = planned(job, waiting(job, PATIENCE_S))
    assert late.status.avoidance_dropped_at == NOW
    (note,) = late.notes
    assert note.reason.endswith("NodesNotAvoided")
    assert "node-a" in note.message


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"avoids": ""}, id="avoids no nodes"),
        pytest.param({"reason": "SchedulingGated"}, id="gated"),
    ],
)
def test_job_keeps_avoiding_nodes(pod: dict[str, str]) -> None:
    job = job_with(phase=JobPhase.CREATING)
    assert planned(job, waiting(job, 1e6, **pod)) == Plan(job.status)


@pytest.mark.parametrize("phase", [JobPhase.RESTARTING, JobPhase.CLEAN_UP, JobPhase.SUSPENDED])
def test_job_that_creates_no_pods_gives_up_nothing(phase: JobPhase) -> None:
    job = job_with(phase=phase)
    assert planned(job, waiting(job, 1e6)) == Plan(job.status)

"""Which logs are read for the verdict on an attempt."""

from typing import Any

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import UID
from dlctl.api.objects.node_signals import Signal
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.failures.log_requests import LogRequests, log_requests
from dlctl.reconcilers.nodes.node_states import LostNode, NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from tests.builders import RUNNING, exited
from tests.reconcilers.failures.torch_jobs import after, at, failed, pods, running, torch_job


def requested(job: Job, found: list[Pod], seconds: float, count: int = 2) -> LogRequests:
    return log_requests(job, observe(job, Children(found), at(seconds)), count, at(seconds))


def uids(requests: LogRequests) -> tuple[list[str], list[str]]:
    return [one.uid for one in requests.new], [one.uid for one in requests.late]


def late_failures(**more: Any) -> dict[str, Any]:
    return {"worker1": failed(1, 30), "worker0": failed(1, 32, "b"), **more}


def test_earliest_ends_are_read() -> None:
    job = running(torch_job("Never"))
    found = pods(job, **late_failures(master0=failed(1, 29, "c")))
    assert uids(requested(job, found, 40)) == (["c", "a"], [])


def test_running_and_healthy_jobs_need_no_log() -> None:
    job = running(torch_job("Never"))
    assert requested(job, pods(job), 40).all == ()


def test_late_ends_of_a_recorded_attempt_are_read_as_well() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    found = pods(job, worker1=failed(137, 30), worker0=failed(134, 50, "b"))
    assert uids(requested(job, found, 51)) == ([], ["a", "b"])


def test_ends_of_earlier_attempts_are_not_read() -> None:
    job = running(torch_job())
    job = after(job, pods(job, worker1=failed(137, 30)), 31)
    job = after(job, pods(job, "b"), 50)
    stale = pods(job, worker1=failed(137, 30))
    assert requested(job, stale, 51).all == ()
    again = pods(job, "b", worker1=failed(137, 60, "b", started=45))
    assert uids(requested(job, again, 61)) == (["b"], [])


def test_cause_that_the_pod_proves_needs_no_log() -> None:
    job = running(torch_job("Never"))
    killed = pods(job, worker1=failed(137, 30, reason="OOMKilled"))
    assert requested(job, killed, 31).all == ()


def test_job_that_has_ended_needs_no_log() -> None:
    job = running(torch_job("Never"))
    found = pods(job, worker1=failed(1, 30))
    done = attrs.evolve(job, status=attrs.evolve(job.status, phase=JobPhase.CLEAN_UP))
    assert len(requested(job, found, 31).all) == 1
    assert requested(done, found, 31).all == ()


def test_logs_on_lost_nodes_cannot_be_read() -> None:
    job = running(torch_job("Never"))
    found = pods(job, worker1=failed(1, 30, node_name="gone"))
    observed = observe(job, Children(found), at(31))
    nodes = NodeStates({"gone": NodeState("gone", lost=LostNode(False, at(20)))})
    lost = observe(job, Children(found, nodes=nodes), at(31))
    assert log_requests(job, lost, 2, at(31)).all == ()
    assert len(log_requests(job, observed, 2, at(31)).all) == 1


def test_run_repeated_in_place_is_the_same_request_with_another_log() -> None:
    job = running(torch_job("OnFailure"))
    end = exited(1, at=at(30))
    ended = {"state": end, "restart_policy": "OnFailure"}
    again = {**ended, "state": RUNNING, "last_state": end}
    (before,) = requested(job, pods(job, worker1=ended), 31).all
    (after_,) = requested(job, pods(job, worker1=again), 33).all
    assert before == after_
    assert (before.is_previous, after_.is_previous) == (False, True)


def test_failed_init_container_is_named() -> None:
    job = running(torch_job("Never"))
    init = {"name": "fetch", "state": exited(4, at=at(30))}
    broken = {"phase": "Failed", "state": None, "initContainerStatuses": [init]}
    (request,) = requested(job, pods(job, worker1=broken), 31).all
    assert request.container == "fetch"


def test_requested_logs_are_kept_over_those_of_the_same_second() -> None:
    job = running(torch_job("Never"))
    found = pods(job, worker1=failed(1, 30, "b"), worker0=failed(1, 30))
    observed = observe(job, Children(found), at(31))
    first = log_requests(job, observed, 1, at(31)).new
    assert [one.uid for one in first] == ["a"]
    kept = log_requests(job, observed, 1, at(31), known=frozenset({UID("b")})).new
    assert [one.uid for one in kept] == ["b"]


def test_program_on_a_node_that_only_drains_may_have_failed_by_itself() -> None:
    job = running(torch_job("Never"))
    spot = Signal("spot", "has the taint spot")
    for kind, expected in ((NodeFault.DRAINING, ["a"]), (NodeFault.DOWN, [])):
        nodes = NodeStates({"node-a": NodeState("a", spot, None, "is at fault", kind)})
        found = pods(job, worker1=failed(1, 30, node_name="node-a"))
        observed = observe(job, Children(found, nodes=nodes), at(40))
        assert uids(log_requests(job, observed, 2, at(40))) == (expected, [])

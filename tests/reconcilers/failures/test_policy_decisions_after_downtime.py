"""Failures that are first seen together, though minutes lie between them: no controller ran."""

import datetime

import attrs
import pytest

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.nodes.node_states import LostNode, NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import plan_job
from tests.reconcilers.failures.gangs import said
from tests.reconcilers.failures.policy_jobs import (
    ANY_REPLICA,
    RESTART_WORKERS,
    end_of,
    failure_reason,
    replacement,
    torch,
)
from tests.reconcilers.failures.torch_jobs import (
    SETTINGS,
    after,
    at,
    attempts,
    causes,
    failed,
    planned,
    pods,
)
from tests.reconcilers.program_output.outputs import GLOO_CLOSED, raised

ON_42: JSON = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}


def test_each_replica_that_restarts_alone_is_decided_by_its_own_failure() -> None:
    job = torch(ANY_REPLICA, limit=5)
    found = pods(job, worker0=failed(3, 30), worker1=failed(4, 300, "b"))
    plan = planned(job, found, 320)
    job = attrs.evolve(job, status=plan.status)
    assert causes(job) == [(Cause.USER_CODE, "worker-0"), (Cause.USER_CODE, "worker-1")]
    assert [one.end_time for one in attempts(job)] == [at(30), at(300)]
    assert end_of(job) == (JobPhase.RUNNING, 0, 2)
    assert len(plan.deleted_pods) == 2
    for seconds in (320, 321, 400):
        assert planned(job, found, seconds).status == job.status


@pytest.mark.parametrize(("first", "second", "replica"), [(42, 1, 0), (1, 42, 1)])
def test_rule_of_one_failure_decides_also_beside_another(
    first: int, second: int, replica: int
) -> None:
    job = torch(ON_42, ANY_REPLICA, limit=5)
    job = after(job, pods(job, worker0=failed(first, 30), worker1=failed(second, 300, "b")), 320)
    assert failure_reason(job) == "FailJobAction"
    assert job.status.failure is not None
    assert job.status.failure.replica == f"worker-{replica}"


def test_better_proved_failure_minutes_later_does_not_hide_the_first() -> None:
    job = torch(ON_42, ANY_REPLICA, limit=5)
    killed = failed(137, 300, "b", reason="OOMKilled")
    job = after(job, pods(job, worker0=failed(42, 30), worker1=killed), 320)
    assert failure_reason(job) == "FailJobAction"


def test_each_of_the_failures_counts() -> None:
    job = torch(ANY_REPLICA, limit=1)
    job = after(job, pods(job, worker0=failed(3, 30), worker1=failed(4, 300, "b")), 320)
    assert failure_reason(job) == "ReachedMaxRestarts"
    assert len(attempts(job)) == 2


def test_later_failure_restarts_the_job() -> None:
    job = torch(RESTART_WORKERS, limit=5)
    job = after(job, pods(job, worker0=failed(3, 30), master0=failed(4, 300, "b")), 320)
    assert end_of(job) == (JobPhase.RESTARTING, 1, 2)
    assert [found and found[1] for found in causes(job)] == ["worker-0", "master-0"]


def test_eviction_minutes_later_does_not_excuse_the_first_failure() -> None:
    job = torch(ANY_REPLICA, limit=5)
    evicted = failed(137, 300, "b") | {"reason": "Evicted"}
    job = after(job, pods(job, worker0=failed(3, 30), worker1=evicted), 320)
    assert causes(job) == [(Cause.USER_CODE, "worker-0"), (Cause.EVICTION, "worker-1")]
    assert job.status.counted_restarts == 1


def test_replica_that_started_and_failed_after_another_is_decided() -> None:
    job = torch(ANY_REPLICA, limit=5)
    found = pods(job, worker0=failed(3, 30), worker1=replacement(4, 100, started=60))
    job = after(job, found, 320)
    assert causes(job) == [(Cause.USER_CODE, "worker-0"), (Cause.USER_CODE, "worker-1")]
    assert job.status.counted_restarts == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(failed(3, 30), failed(4, 90, "b"), id="within a minute"),
        pytest.param(failed(3, 30), said(GLOO_CLOSED, failed(1, 300, "b")), id="lost its peer"),
        pytest.param(failed(3, 30), failed(134, 300, "b"), id="aborted"),
        pytest.param(said(GLOO_CLOSED, failed(1, 30)), failed(4, 300, "b"), id="first lost a peer"),
    ],
)
def test_failures_that_may_belong_together_are_decided_once(first: JSON, second: JSON) -> None:
    job = torch(ANY_REPLICA, limit=5)
    found = pods(job, worker0=first, worker1=second)
    job = after(job, found, 320)
    assert end_of(job) == (JobPhase.RUNNING, 0, 1)
    for seconds in (320, 321, 400):
        assert planned(job, found, seconds).status == job.status


def test_failures_are_decided_when_the_proofs_of_the_last_one_are_there() -> None:
    job = torch(ANY_REPLICA, limit=5)
    found = pods(job, worker0=failed(3, 30), worker1=failed(4, 300, "b"))
    plan = planned(job, found, 301)
    assert (plan.status, plan.deleted_pods, plan.requeue_after_s) == (job.status, (), 2)
    plan = planned(job, found, 303)
    job = attrs.evolve(job, status=plan.status)
    assert [one[1] for one in causes(job) if one] == ["worker-0", "worker-1"]
    assert job.status.counted_restarts == 2


def test_failure_that_was_decided_with_an_earlier_end_is_not_decided_again() -> None:
    job = torch(ANY_REPLICA, limit=9, workers=8)
    ends: JSON = {f"worker{n}": said(GLOO_CLOSED, failed(1, 30, f"u{n}")) for n in range(6)}
    ends["worker6"] = failed(3, 100, "u6")
    ends["worker7"] = failed(137, 300, "u7", reason="OOMKilled")
    job = after(job, pods(job, **ends), 320)
    assert causes(job) == [(Cause.OUT_OF_MEMORY, "worker-7"), (Cause.USER_CODE, "worker-6")]
    assert job.status.counted_restarts == 2


def plan_on(job: Job, found: list[Pod], seconds: float, condition: NodeState) -> Plan:
    now = at(seconds)
    children = Children(found, nodes=NodeStates({"node-b": condition}))
    return plan_job(job, observe(job, children, now), Desired(), now, SETTINGS)


def silent_since(time: datetime.datetime) -> NodeState:
    lost = LostNode(out_of_service=False, silent_since=time)
    return NodeState("node-b", None, lost, "does not answer", NodeFault.DOWN, time)


CREATED: JSON = {"uid": "b", "creationTimestamp": at(0).isoformat()}
LEAVING: JSON = {"deletionTimestamp": at(330).isoformat(), "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize("rules", [(), (ANY_REPLICA,)], ids=["whole job", "replica"])
@pytest.mark.parametrize("worker", [{}, LEAVING], ids=["running", "deleted"])
@pytest.mark.parametrize(("silent_s", "cause"), [(250, Cause.USER_CODE), (80, Cause.NODE)])
def test_node_that_falls_silent_minutes_after_a_failure_is_not_to_blame_for_it(
    rules: tuple[JSON, ...], worker: JSON, silent_s: float, cause: Cause
) -> None:
    job = torch(*rules, limit=5)
    on_b: JSON = {"metadata": {**CREATED, **worker}, "node_name": "node-b"}
    first = said(raised("ValueError: nan"), failed(1, 30))
    plan = plan_on(job, pods(job, worker0=first, worker1=on_b), 350, silent_since(at(silent_s)))
    verdict = plan.status.attempts[0].verdict
    assert verdict is not None
    assert verdict.cause is cause

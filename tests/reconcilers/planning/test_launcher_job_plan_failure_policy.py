"""Plans of MPIJobs of v2beta1 with a failure policy: their launchers' Jobs run a launcher once."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.node_signals import Signal
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import RestartStrategy
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState, launcher_state
from dlctl.reconcilers.launcher_job.next_write import (
    LauncherJobAction,
    LauncherJobWrite,
    deletion,
    end_write,
    suspended_write,
)
from dlctl.reconcilers.nodes.node_states import NodeFault, NodeState, NodeStates
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT
from tests import mpi_v2beta1 as v2beta1
from tests.builders import NOW, RUNNING, exited, make_job, make_pod, renderer_of
from tests.reconcilers.launcher_job.builders import (
    COMPLETE,
    FAILED,
    LAUNCHER,
    OURS,
    WORKERS,
    batch_job,
    launcher_pod,
)
from tests.reconcilers.program_output import outputs

REPLACE: JSON = {"action": "RestartReplica"}
LEAVING: JSON = {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}
# A minute before that.
LEFT: JSON = {**LEAVING, "deletionTimestamp": NOW - datetime.timedelta(minutes=1)}


def job_of(*rules: JSON, restarts: int = 0, limit: int = 1, **fields: Any) -> Job:
    """Return a job that runs, in an attempt of this number."""
    policy = {"failurePolicy": {"rules": list(rules), "maxRestarts": limit}, **fields}
    job = make_job(v2beta1.mpi_job(policy=policy))
    start = NOW - datetime.timedelta(minutes=5)
    status = JobStatus(phase=JobPhase.RUNNING, start_time=start, job_restarts=restarts)
    return attrs.evolve(job, status=status)


def marked(number: int, *conditions: JSON, **fields: Any) -> BatchJob:
    """Return the Job of a launcher in an attempt."""
    metadata = {"labels": {**OURS, RESTART_ATTEMPT: str(number)}, **fields.pop("metadata", {})}
    return batch_job(*conditions, metadata=metadata, backoff_limit=0, **fields)


def failed(code: int = 3, message: str = "", **fields: Any) -> Pod:
    ended = {"name": "mpi", "state": said(code, message)}
    return launcher_pod(phase="Failed", age_s=60, containerStatuses=[ended], **fields)


def said(code: int, message: str) -> JSON:
    """Return the state of a container that has left last words."""
    state = exited(code)
    return {"terminated": {**state["terminated"], "message": message}}


def alive(**fields: Any) -> Pod:
    return launcher_pod(age_s=60, containerStatuses=[{"name": "mpi", "state": RUNNING}], **fields)


def workers(job: Job, number: int = 0) -> list[Pod]:
    labels = {RESTART_ATTEMPT: str(number)}
    return [make_pod(job, one, state=RUNNING, metadata={"labels": labels}) for one in WORKERS]


def planned(
    job: Job,
    launcher: BatchJob | None,
    *pods: Pod,
    found: list[Pod] | None = None,
    after_s: float = 0.0,
    **children: Any,
) -> Plan:
    """Return the plan, ``after_s`` seconds later; ``found`` are the workers, by default all."""
    now = NOW + datetime.timedelta(seconds=after_s)
    own = workers(job, job.status.job_restarts) if found is None else found
    jobs = [launcher] if launcher else ()
    seen = Children(own, launcher_jobs=jobs, launcher_pods=pods, **children)
    return plan_job(job, observe(job, seen, now), Desired(), now, PlanSettings())


def write_of(plan: Plan) -> LauncherJobAction | None:
    return plan.launcher_job.action if plan.launcher_job else None


def continued(job: Job, plan: Plan) -> Job:
    return attrs.evolve(job, status=plan.status)


def states(job: Job, launcher: BatchJob | None, *pods: Pod) -> ReplicaState:
    seen = Children(launcher_jobs=[launcher] if launcher else (), launcher_pods=pods)
    return observe(job, seen, NOW).states[LAUNCHER]


@pytest.mark.parametrize(
    ("launcher", "pod", "expected"),
    [
        pytest.param(None, None, ReplicaState.MISSING, id="no Job"),
        pytest.param(marked(0), None, ReplicaState.PENDING, id="no pod yet"),
        pytest.param(marked(0), alive(), ReplicaState.RUNNING, id="runs"),
        pytest.param(marked(0), failed(), ReplicaState.FAILED_RETRYABLE, id="failed"),
        pytest.param(
            marked(0, FAILED), failed(), ReplicaState.FAILED_RETRYABLE, id="failed, as its Job"
        ),
        pytest.param(marked(0, FAILED), None, ReplicaState.MISSING, id="failed, and gone"),
        pytest.param(marked(0), alive(metadata=LEAVING), ReplicaState.TERMINATING, id="deleted"),
        pytest.param(marked(0, COMPLETE), None, ReplicaState.SUCCEEDED, id="complete"),
        pytest.param(
            marked(0, COMPLETE, metadata=LEAVING), None, ReplicaState.MISSING, id="Job deleted"
        ),
    ],
)
def test_launcher_is_judged_by_its_pod(
    launcher: BatchJob | None, pod: Pod | None, expected: ReplicaState
) -> None:
    assert states(job_of(), launcher, *([pod] if pod else [])) is expected


def test_launcher_of_an_earlier_attempt_is_missing_and_its_job_is_deleted() -> None:
    job = job_of(restarts=2)
    assert states(job, marked(1), alive()) is ReplicaState.MISSING
    assert states(job, marked(2), alive()) is ReplicaState.RUNNING
    # Older than the policy.
    assert states(job, batch_job(), alive()) is ReplicaState.RUNNING
    plan = planned(job, marked(1), alive(), found=[])
    assert (write_of(plan), plan.pods) == (LauncherJobAction.DELETE, ())


def test_resumed_job_starts_nothing_while_a_worker_of_an_earlier_attempt_leaves() -> None:
    job = job_of(restarts=1)
    status = attrs.evolve(job.status, phase=JobPhase.CREATING)
    job = attrs.evolve(job, status=status)
    labels = {RESTART_ATTEMPT: "0"}
    left = make_pod(job, WORKERS[0], state=RUNNING, metadata={**LEFT, "labels": labels})
    plan = planned(job, marked(1, suspended=True), found=[left])
    assert (plan.pods, write_of(plan)) == ((), None)
    assert planned(job, marked(1, suspended=True), found=[]).pods == WORKERS


def test_no_worker_is_created_while_the_launcher_of_an_earlier_attempt_leaves() -> None:
    job = job_of(restarts=1)
    plan = planned(job, marked(0, metadata=LEAVING), found=[])
    assert (plan.launcher_job, plan.pods) == (None, ())
    assert planned(job, None, found=[]).pods == WORKERS


def test_failed_launcher_restarts_the_job_once_all_of_it_is_gone() -> None:
    job = job_of()
    pod, launcher = failed(message="ValueError: no"), marked(0)
    job = continued(job, planned(job, launcher, pod))
    assert (job.status.phase, job.status.job_restarts) == (JobPhase.RESTARTING, 1)
    # Its log can be read until then.
    waiting = planned(job, launcher, pod, found=workers(job))
    assert len(waiting.deleted_pods) == 2
    assert waiting.launcher_job is None
    due = planned(job, launcher, pod, found=[], after_s=60)
    assert due.launcher_job == LauncherJobWrite(LauncherJobAction.DELETE, launcher)
    left = planned(job, marked(0, metadata=LEAVING), pod, found=[], after_s=60)
    assert (left.status.phase, left.launcher_job) == (JobPhase.RESTARTING, None)
    gone = planned(job, None, found=[], after_s=60)
    assert gone.status.phase is JobPhase.CREATING
    again = planned(continued(job, gone), None, found=[], after_s=60)
    assert (again.pods, write_of(again)) == (WORKERS, LauncherJobAction.CREATE)


def test_failed_worker_deletes_the_launcher_at_once() -> None:
    job = job_of()
    bad = make_pod(job, WORKERS[1], phase="Failed", state=said(3, "ValueError: no"))
    found = [workers(job)[0], bad]
    job = continued(job, planned(job, marked(0), alive(), found=found))
    assert job.status.phase is JobPhase.RESTARTING
    plan = planned(job, marked(0), alive(), found=found)
    assert write_of(plan) is LauncherJobAction.DELETE
    assert plan.deleted_pods == (found[0],)


def test_recreate_does_not_wait_until_the_launcher_is_gone() -> None:
    job = job_of(restarts=1)
    policy = job.run_policy.failure_policy
    assert policy is not None
    recreate = attrs.evolve(policy, restart_strategy=RestartStrategy.RECREATE)
    status = attrs.evolve(job.status, phase=JobPhase.RESTARTING)
    job = attrs.evolve(
        job, status=status, run_policy=attrs.evolve(job.run_policy, failure_policy=recreate)
    )
    assert planned(job, marked(0), found=[]).status.phase is JobPhase.RESTARTING
    leaving = marked(0, metadata=LEAVING)
    assert planned(job, leaving, found=[]).status.phase is JobPhase.CREATING
    job = continued(job, planned(job, leaving, found=[]))
    plan = planned(job, leaving, found=[])
    assert (plan.pods, plan.launcher_job) == (WORKERS, None)


def test_rule_replaces_a_failed_launcher_alone_after_a_back_off() -> None:
    job = job_of(REPLACE)
    pod, launcher = failed(message="ValueError: no"), marked(0, FAILED)
    first = planned(job, launcher, pod)
    assert (first.deleted_pods, first.launcher_job, first.requeue_after_s) == ((), None, 10)
    job = continued(job, first)
    assert (job.status.job_restarts, job.status.counted_restarts) == (0, 1)
    due = planned(job, launcher, pod, after_s=10)
    assert (due.deleted_pods, write_of(due)) == ((), LauncherJobAction.DELETE)
    assert planned(job, None, after_s=9).launcher_job is None
    assert write_of(planned(job, None, after_s=10)) is LauncherJobAction.CREATE


def test_launcher_that_another_client_deletes_is_replaced_alone_by_a_rule() -> None:
    job = job_of(REPLACE, limit=0)
    leaving = alive(metadata=LEAVING)
    plan = planned(job, marked(0), leaving)
    assert plan.deleted_pods == ()
    assert write_of(plan) is LauncherJobAction.DELETE
    assert plan.status.attempts[-1].verdict is not None
    assert plan.status.counted_restarts == 0


def test_launcher_that_is_gone_restarts_the_job() -> None:
    job = job_of(limit=0)
    running = planned(job, marked(0), alive())
    plan = planned(continued(job, running), None)
    assert plan.status.phase is JobPhase.RESTARTING
    assert plan.status.counted_restarts == 0


def test_launchers_report_blames_the_worker() -> None:
    rule = {"action": "FailJob", "targetReplicas": ["Worker"]}
    report = outputs.open_mpi_signal(3, "pi-worker-1.pi.ml.svc", "11 (Segmentation fault)")
    plan = planned(job_of(rule), marked(0), failed(139, report))
    assert plan.status.failure is not None
    assert plan.status.failure.replica == "worker-1"
    verdict = plan.status.attempts[-1].verdict
    assert verdict is not None
    assert (verdict.rank, verdict.exit_code) == (3, 139)


def test_success_of_the_launcher_ends_the_job() -> None:
    ended = {"name": "mpi", "state": exited(0)}
    done = launcher_pod(phase="Succeeded", containerStatuses=[ended])
    assert planned(job_of(), marked(0), done).status.state is JobState.SUCCEEDED
    at = NOW - datetime.timedelta(seconds=5)
    plan = planned(job_of(), marked(0, COMPLETE, completionTime=at), done)
    assert plan.status.completion_time == at


def test_draining_node_replaces_the_launcher_alone_by_a_rule() -> None:
    job = job_of(REPLACE)
    signal = Signal("example.com/spot", "has the taint example.com/spot")
    nodes = NodeStates({"spot": NodeState("spot", signal, None, signal.text, NodeFault.DRAINING)})
    pod = alive(node="spot")
    first = planned(job, marked(0), pod, nodes=nodes)
    assert first.status.attempts[-1].end_time == NOW
    plan = planned(continued(job, first), marked(0), pod, nodes=nodes)
    assert (plan.deleted_pods, write_of(plan)) == ((), LauncherJobAction.DELETE)


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        pytest.param(None, LauncherJobAction.CREATE_SUSPENDED, id="no Job"),
        pytest.param(marked(1), LauncherJobAction.SUSPEND, id="runs"),
        pytest.param(marked(1, suspended=True), None, id="is suspended"),
        pytest.param(marked(0), LauncherJobAction.DELETE, id="of an earlier attempt"),
        pytest.param(marked(1, FAILED), LauncherJobAction.DELETE, id="has failed"),
        pytest.param(marked(1, FAILED, metadata=LEAVING), None, id="is leaving"),
        pytest.param(marked(1, COMPLETE), None, id="is complete"),
    ],
)
def test_suspended_job_has_a_launcher_that_can_be_resumed(
    launcher: BatchJob | None, expected: LauncherJobAction | None
) -> None:
    job = job_of(restarts=1, suspend=True)
    state = launcher_state(job, [launcher] if launcher else (), (), NOW)
    planned_write = suspended_write(job, state)
    assert (planned_write.action if planned_write else None) is expected


@pytest.mark.parametrize(
    ("pod", "may_resume"),
    [(alive(metadata=LEFT), False), (None, True)],
    ids=["leaves", "is gone"],
)
def test_launcher_resumes_once_that_of_the_suspended_run_is_gone(
    pod: Pod | None, may_resume: bool
) -> None:
    job = job_of()
    asked = NOW - datetime.timedelta(seconds=40)
    status = attrs.evolve(job.status, phase=JobPhase.CREATING, start_time=asked)
    job = attrs.evolve(job, status=status)
    pods = [pod] if pod else []
    plan = planned(job, marked(0, suspended=True), *pods, found=[])
    assert bool(plan.pods) is may_resume
    # The launcher follows its workers.
    assert write_of(plan) is None
    plan = planned(job, marked(0, suspended=True), *pods)
    assert (write_of(plan) is LauncherJobAction.RESUME) is may_resume


@pytest.mark.parametrize(
    ("state", "is_failed", "expected"),
    [
        pytest.param(LauncherState(marked(0)), True, LauncherJobAction.SUSPEND, id="no pod yet"),
        pytest.param(
            LauncherState(marked(0), active_pods=(alive(),), newest_pod=alive()),
            True, LauncherJobAction.SUSPEND, id="runs",
        ),
        pytest.param(
            LauncherState(marked(0), newest_pod=failed()), True, None, id="about to fail by itself"
        ),
        pytest.param(
            LauncherState(batch_job(), newest_pod=failed()),
            True, LauncherJobAction.SUSPEND, id="retries",
        ),
        pytest.param(LauncherState(marked(0, FAILED)), True, None, id="has failed"),
        pytest.param(LauncherState(marked(0)), False, None, id="success"),
        pytest.param(LauncherState(), True, None, id="none"),
    ],
)  # fmt: skip
def test_launcher_of_a_job_that_has_failed_is_stopped(
    state: LauncherState, is_failed: bool, expected: LauncherJobAction | None
) -> None:
    write = end_write(job_of(), state, failed=is_failed)
    assert (write.action if write else None) is expected


def test_job_that_is_leaving_is_not_deleted_again() -> None:
    assert deletion(LauncherState()) is None
    assert deletion(LauncherState(marked(0, metadata=LEAVING))) is None


def test_job_of_a_launcher_has_no_retries_and_is_marked() -> None:
    wire = v2beta1.mpi_job(policy={"failurePolicy": {}})
    renderer = renderer_of(wire)
    job = attrs.evolve(renderer.job, status=JobStatus(job_restarts=2))
    rendered = attrs.evolve(renderer, job=job).launcher_job(suspended=False)
    assert rendered["metadata"]["labels"][RESTART_ATTEMPT] == "2"
    assert rendered["spec"]["backoffLimit"] == 0
    template = rendered["spec"]["template"]
    assert template["metadata"]["labels"][RESTART_ATTEMPT] == "2"
    env = {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}
    assert env["DLCTL_RESTART_ATTEMPT"] == "2"


def test_deleted_job_is_no_write_that_a_rejection_holds_back() -> None:
    launcher = marked(0)
    plan = Plan(JobStatus(), launcher_job=LauncherJobWrite(LauncherJobAction.DELETE, launcher))
    assert not plan.has_writes
    assert plan.deleted_launcher_job == launcher

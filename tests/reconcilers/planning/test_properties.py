"""Properties of every plan, whatever the states of a job's pods."""

import datetime
from typing import Any

import attrs
import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlctl.api.job import Job, Replica
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, Observed, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, exited, kind_of, make_job, make_pod

KIND = kind_of()
FRAMEWORK = KIND.dialects["v1alpha1"].framework
JOBS = st.builds(
    make_job,
    workers=st.integers(0, 2),
    cleanupPodPolicy=st.sampled_from(["All", "Running", "None"]),
)
CODES = st.sampled_from([0, 1, 130, 134, 137, 143])
TIMES = st.integers(-900, 5).map(lambda s: NOW + datetime.timedelta(seconds=s, microseconds=7))
ENDS = st.builds(lambda code, at: exited(code, at=at), CODES, TIMES)
STATES = st.none() | st.just(RUNNING) | ENDS | st.just({"waiting": {"reason": "ErrImagePull"}})
LEAVING = TIMES.map(
    lambda at: {"deletionTimestamp": at.isoformat(), "deletionGracePeriodSeconds": 30}
)
PODS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        "state": STATES,
        "last_state": st.none() | ENDS,
        "metadata": st.builds(lambda uid, leaving: {"uid": uid, **leaving},
                              st.sampled_from(["a", "b"]), st.just({}) | LEAVING),
        "restart_policy": st.sampled_from(["OnFailure", "Never"]),
    },
    optional={"reason": st.sampled_from(["Evicted", "DeadlineExceeded"])},
)  # fmt: skip
# Successive snapshots of a job's pods, each with a pod or none for each replica.
SNAPSHOTS = st.lists(st.lists(st.none() | PODS, min_size=4, max_size=4), min_size=1, max_size=4)


def pods_of(job: Job, snapshot: list[dict[str, Any] | None]) -> list[Pod]:
    # A snapshot may have more pods than the job has replicas: the rest are surplus.
    replicas = [*job.replicas, Replica("worker", 8), Replica("worker", 9)]
    return [
        make_pod(job, replica, **{**state, "metadata": _metadata(job, replica, state)})
        for replica, state in zip(replicas, snapshot, strict=False)
        if state is not None
    ]


def _metadata(job: Job, replica: Replica, state: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = state["metadata"]
    return {**own, "name": job.child_name(replica), "uid": f"{replica}-{own['uid']}"}


def seen(job: Job, pods: list[Pod]) -> Observed:
    return observe(job, Children(pods), NOW)


def planned(job: Job, pods: list[Pod]) -> Plan:
    served = Desired((FRAMEWORK.default_chief(),))
    return plan_job(job, seen(job, pods), served, NOW, PlanSettings())


def on_the_wire(job: Job, status: JobStatus) -> JobStatus:
    """Return the status after encoding and decoding it."""
    dialect = KIND.dialects[job.resource.version]
    raw = msgspec.Raw(msgspec.json.encode(dialect.write_status(status)))
    return dialect.read_status(KIND.decode(JobObject(status=raw)))


def history(job: Job, snapshots: list[list[dict[str, Any] | None]]) -> tuple[Job, list[Pod]]:
    """Return the job after all snapshots except the last, and the pods of the last."""
    for snapshot in snapshots[:-1]:
        made = planned(job, pods_of(job, snapshot))
        job = attrs.evolve(job, status=on_the_wire(job, made.status))
    return job, pods_of(job, snapshots[-1])


def restarted_beside_a_running_one() -> list[list[dict[str, Any] | None]]:
    """Return pods of a job that runs again when its failure is first seen."""
    runs = {"phase": "Pending", "state": RUNNING, "last_state": None, "metadata": {"uid": "a"}}
    ended = exited(130, at=NOW - datetime.timedelta(seconds=1))
    return [[runs, {**runs, "last_state": ended, "restart_policy": "OnFailure"}, None, None]]


def restarted_beside_a_success() -> list[list[dict[str, Any] | None]]:
    """Return pods of a job whose server fails, and again when its scheduler succeeds."""
    server: dict[str, Any] = {"metadata": {"uid": "a"}, "restart_policy": "OnFailure"}
    first, second = (NOW + datetime.timedelta(seconds=s, microseconds=7) for s in (-5, 0))
    failed = {**server, "phase": "Pending", "state": exited(130, at=first)}
    again = {**server, "phase": "Pending", "state": None, "last_state": exited(1, at=second)}
    scheduler = {**server, "phase": "Succeeded", "state": None}
    return [[None, failed, None, None], [scheduler, again, None, None]]


@settings(max_examples=60)
@given(job=JOBS, snapshots=SNAPSHOTS)
@example(make_job(workers=0, cleanupPodPolicy="All"), restarted_beside_a_success())
@example(make_job(workers=0), restarted_beside_a_running_one())
def test_planning_again_from_the_resulting_status_plans_nothing_new(
    job: Job, snapshots: list[list[dict[str, Any] | None]]
) -> None:
    def again(plan: Plan) -> Plan:
        return planned(attrs.evolve(job, status=on_the_wire(job, plan.status)), pods)

    job, pods = history(job, snapshots)
    once = planned(job, pods)
    twice = again(once)
    # The end of an attempt is persisted before the next one begins.
    begun = attrs.evolve(once.status, attempts=twice.status.attempts)
    assert twice == attrs.evolve(once, status=begun, notes=())
    assert again(twice) == twice


@settings(max_examples=60)
@given(job=JOBS, snapshots=SNAPSHOTS)
def test_no_replica_gets_a_second_pod_and_completed_ones_get_none(
    job: Job, snapshots: list[list[dict[str, Any] | None]]
) -> None:
    job, pods = history(job, snapshots)
    made = planned(job, pods)
    there = {pod.metadata.name for pod in pods}
    for replica in made.pods:
        assert job.child_name(replica) not in there
        assert replica.index not in made.status.completed_indexes(replica.type)
    assert all(pod in pods and not pod.metadata.is_terminating for pod in made.deleted_pods)


@settings(max_examples=60)
@given(job=JOBS, snapshots=SNAPSHOTS)
def test_counts_in_the_status_never_decrease(
    job: Job, snapshots: list[list[dict[str, Any] | None]]
) -> None:
    before, pods = history(job, snapshots)
    after = planned(before, pods).status
    for type_ in FRAMEWORK.replica_types:
        assert before.status.completed_indexes(type_) <= after.completed_indexes(type_)
    for name, restart in before.status.restarts.items():
        assert after.restarts[name].failures >= restart.failures
    if before.status.phase is JobPhase.DONE:
        assert after == before.status
    if before.status.failure:
        assert after.failure == before.status.failure


@settings(max_examples=60)
@given(job=JOBS, snapshots=SNAPSHOTS)
def test_no_replica_of_a_running_job_is_left_without_action_or_wake_up(
    job: Job, snapshots: list[list[dict[str, Any] | None]]
) -> None:
    job, pods = history(job, snapshots)
    made = planned(job, pods)
    if made.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE):
        return
    # The kubelet or the API server will report changes of these.
    alive = {p.metadata.name for p in pods if not p.phase.finished or p.metadata.is_terminating}
    alive |= {p.metadata.name for p in made.deleted_pods}
    for replica in job.replicas:
        done = replica.index in made.status.completed_indexes(replica.type)
        moves = replica in made.pods or job.child_name(replica) in alive
        assert done or moves or made.requeue_after_s

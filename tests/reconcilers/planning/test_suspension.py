"""A suspended job has no pods; once resumed, it starts over."""

import datetime

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import ObjectMeta
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobPhase, JobState, RestartRecord
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from tests.builders import NOW, RUNNING, exited, make_job, make_pod

LATER = NOW + datetime.timedelta(minutes=5)
LEAVING = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}


def job_of(before: Plan | None = None, *, suspended: bool) -> Job:
    job = make_job(runPolicy={"suspend": suspended})
    return attrs.evolve(job, status=before.status) if before else job


def pods_of(job: Job) -> list[Pod]:
    return [make_pod(job, replica, state=RUNNING) for replica in job.replicas]


def planned(job: Job, *pods: Pod, now: datetime.datetime = NOW) -> Plan:
    services = [
        Service(metadata=ObjectMeta(name=job.child_name(replica), namespace="ml"))
        for replica in job.replicas
        if pods
    ]
    observed = observe(job, Children(pods, services), now)
    return plan_job(job, observed, Desired(tuple(job.replicas)), now, PlanSettings())


def running() -> Plan:
    new = planned(job_of(suspended=False))
    job = job_of(new, suspended=False)
    return planned(job, *pods_of(job))


def condition_types(made: Plan) -> list[tuple[str, bool, str]]:
    return [(c.type, c.status, c.reason) for c in made.status.conditions]


def test_job_that_is_suspended_from_the_start_has_not_started() -> None:
    made = planned(job_of(suspended=True))
    assert (made.status.phase, made.status.start_time) == (JobPhase.SUSPENDED, None)
    assert (made.pods, made.services) == ((), ())
    assert condition_types(made) == [
        ("Waiting", True, "Suspended"),
        ("Created", True, "MXJobCreated"),
        ("Suspended", True, "MXJobSuspended"),
    ]
    assert [(note.type, note.reason) for note in made.notes] == [("Normal", "MXJobSuspended")]


def test_suspending_deletes_pods_and_services_and_keeps_the_start_time() -> None:
    before = running()
    job = job_of(before, suspended=True)
    leaving = make_pod(job, next(job.replicas), state=RUNNING, metadata=LEAVING)
    made = planned(job, leaving, *pods_of(job)[1:])
    assert (len(made.deleted_pods), len(made.deleted_services)) == (3, 4)
    assert made.status.start_time == NOW
    assert condition_types(made) == [
        ("Waiting", True, "Suspended"),
        ("Created", True, "MXJobCreated"),
        ("Running", False, "MXJobSuspended"),
        ("Suspended", True, "MXJobSuspended"),
    ]
    again = planned(job_of(made, suspended=True))
    assert (again.status, again.notes) == (made.status, ())


def test_job_that_is_suspended_before_its_first_status_has_started() -> None:
    created = {"creationTimestamp": NOW.isoformat()}
    job = job_of(suspended=True)
    pods = [make_pod(job, r, state=RUNNING, metadata=created) for r in job.replicas]
    made = planned(job, *pods, now=LATER)
    assert (made.status.phase, made.status.start_time) == (JobPhase.SUSPENDED, NOW)
    assert len(made.deleted_pods) == 4


def test_resumed_job_starts_over_with_a_new_start_time() -> None:
    suspended = planned(job_of(running(), suspended=True))
    made = planned(job_of(suspended, suspended=False), now=LATER)
    assert len(made.pods) == 4
    assert (made.status.phase, made.status.start_time) == (JobPhase.CREATING, LATER)
    assert ("Suspended", False, "MXJobResumed") in condition_types(made)
    job = job_of(made, suspended=False)
    runs = planned(job, *pods_of(job), now=LATER)
    assert [type_ for type_, *_ in condition_types(runs)] == ["Created", "Suspended", "Running"]


def test_worker_that_exited_0_runs_again_after_a_suspension() -> None:
    job = job_of(running(), suspended=False)
    *others, last = job.replicas
    done = make_pod(job, last, phase="Succeeded", state=exited(0))
    before = planned(job, *[make_pod(job, r, state=RUNNING) for r in others], done)
    assert before.status.completed_indexes("worker") == {1}
    suspended = planned(job_of(before, suspended=True))
    made = planned(job_of(suspended, suspended=False), now=LATER)
    assert last in made.pods


def test_finished_job_is_not_suspended() -> None:
    job = job_of(running(), suspended=False)
    pods = [make_pod(job, r, phase="Succeeded", state=exited(0)) for r in job.replicas]
    ended = planned(job, *pods)
    made = planned(job_of(ended, suspended=True))
    assert (made.status.phase, made.status.state) == (JobPhase.DONE, JobState.SUCCEEDED)


def test_failures_before_a_suspension_do_not_count_after_it() -> None:
    before = running()
    restart = RestartRecord(
        failures=2, consecutive_ends=2, pod_uid="gone", reason="Error", finished_at=NOW
    )
    failing = attrs.evolve(
        before, status=attrs.evolve(before.status, restarts={"worker-0": restart})
    )
    assert planned(job_of(failing, suspended=True)).status.restarts == {}

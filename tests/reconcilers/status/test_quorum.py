"""Which failures keep an elastic job from starting or continuing."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.job import LAUNCHER, WORKER, Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.job_status import Failure, JobPhase, RestartRecord
from dlctl.api.status.membership import Membership
from dlctl.reconcilers.membership.planner import with_members
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.status import quorum
from tests.builders import NOW, RUNNING, exited, make_job, make_pod
from tests.dialects.et_operator.manifests import read_job

LATER = NOW + datetime.timedelta(minutes=1)
LAUNCHER_0, FIRST, SECOND = Replica(LAUNCHER, 0), Replica(WORKER, 0), Replica(WORKER, 1)


def elastic(
    *,
    retired: frozenset[int] = frozenset(),
    phase: JobPhase = JobPhase.CREATING,
    restarting: Replica | None = None,
    min_replicas: int = 2,
    requires_launcher: bool = False,
) -> Job:
    """Return a job of two workers that needs both."""
    membership = Membership(members=(0, 1), hosts=(0, 1), retired=retired)
    record = RestartRecord(1, 1, "uid-of-worker-0", "Error", NOW)
    elasticity = Elasticity(min_replicas=min_replicas, requires_launcher=requires_launcher)
    job = attrs.evolve(read_job(), elasticity=elasticity)
    restarts = {str(restarting): record} if restarting else {}
    job = attrs.evolve(job, status=attrs.evolve(job.status, phase=phase, restarts=restarts))
    return with_members(job, membership)


def unmet(job: Job, *pods: Pod) -> list[Failure]:
    return quorum.unmet(job, observe(job, Children(pods), LATER), LATER)


def worker(replica: Replica, **fields: Any) -> Pod:
    return make_pod(read_job(), replica, restart_policy="Never", **fields)


def failed_worker(replica: Replica = FIRST) -> Pod:
    return worker(replica, phase="Failed", state=exited(1))


def test_whole_job_has_its_quorum() -> None:
    assert unmet(elastic(), worker(FIRST, state=RUNNING), worker(SECOND, state=RUNNING)) == []


def test_workers_that_are_yet_to_be_created_count() -> None:
    assert unmet(elastic()) == []


def test_too_few_workers_name_those_that_failed() -> None:
    job = elastic(retired=frozenset({0}))
    failure = Failure("worker-0", "linear-worker-0", "Error", "exit code 1 (general error)", NOW, 1)
    assert unmet(job, failed_worker(), worker(SECOND, state=RUNNING)) == [failure]


def test_deleted_worker_is_named_as_such() -> None:
    job = elastic(retired=frozenset({0}))
    failure = Failure("worker-0", "", "Deleted", "it was deleted", LATER)
    assert unmet(job, worker(SECOND, state=RUNNING)) == [failure]


def test_retired_worker_that_will_be_replaced_counts() -> None:
    job = elastic(retired=frozenset({0}), restarting=FIRST)
    assert unmet(job, failed_worker(), worker(SECOND, state=RUNNING)) == []


def test_workers_above_the_minimum_may_be_lost() -> None:
    job = elastic(retired=frozenset({0}), min_replicas=1)
    assert unmet(job, failed_worker(), worker(SECOND, state=RUNNING)) == []


def test_launcher_in_whatever_state_decides_by_itself() -> None:
    job = elastic(retired=frozenset({0, 1}))
    launcher = make_pod(job, LAUNCHER_0, state=RUNNING)
    assert unmet(job, launcher, failed_worker(FIRST), failed_worker(SECOND)) == []


@pytest.mark.parametrize(
    ("requires_launcher", "phase", "expected"),
    [
        pytest.param(True, JobPhase.RUNNING, ["launcher-0"], id="required"),
        pytest.param(True, JobPhase.CREATING, [], id="not created yet"),
        pytest.param(False, JobPhase.RUNNING, [], id="replaced"),
    ],
)
def test_deletion_of_a_required_launcher_fails_a_running_job(
    requires_launcher: bool, phase: JobPhase, expected: list[str]
) -> None:
    job = elastic(phase=phase, requires_launcher=requires_launcher)
    failures = unmet(job, worker(FIRST, state=RUNNING), worker(SECOND, state=RUNNING))
    assert [failure.replica for failure in failures] == expected


def test_deleted_launcher_is_reported_with_its_pod() -> None:
    job = elastic(phase=JobPhase.RUNNING, requires_launcher=True)
    message = "its pod was deleted, and its restart policy is Never"
    assert unmet(job) == [Failure("launcher-0", "linear-launcher", "Deleted", message, LATER)]


def test_job_with_fixed_workers_always_has_its_quorum() -> None:
    job = make_job()
    job = attrs.evolve(job, status=attrs.evolve(job.status, phase=JobPhase.RUNNING))
    assert unmet(job, make_pod(job, FIRST, state=exited(1))) == []

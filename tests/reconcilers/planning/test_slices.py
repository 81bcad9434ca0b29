"""Slices of plans: in order, and complete in the end."""

from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.job import Replica
from dlctl.api.status.job_status import JobStatus
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.slices import first_slice
from tests.builders import make_job, make_pod, training_job


@given(deleted=st.integers(0, 5), services=st.integers(0, 5), pods=st.integers(0, 5))
def test_first_slice_contains_the_first_steps(deleted: int, services: int, pods: int) -> None:
    job = make_job(training_job("JAXJob", Worker=5))
    replicas = tuple(job.replicas)
    there = tuple(make_pod(job, replica) for replica in replicas)
    whole = Plan(
        JobStatus(),
        deleted_pods=there[:deleted],
        services=replicas[:services],
        pods=replicas[:pods],
    )
    part = first_slice(whole, 4)
    steps = [*whole.deleted_pods, *whole.services, *whole.pods]
    assert [*part.deleted_pods, *part.services, *part.pods] == steps[:4]
    assert part.has_more == (len(steps) > 4)


def test_plan_of_a_small_job_is_not_sliced() -> None:
    whole = Plan(JobStatus(), pods=(Replica("worker", 0),))
    assert first_slice(whole) == whole


def test_job_of_a_launcher_is_created_with_the_last_pods() -> None:
    workers = tuple(make_job(training_job("JAXJob", Worker=5)).replicas)
    launcher = LauncherJobWrite(LauncherJobAction.CREATE)
    whole = Plan(JobStatus(), pods=workers, launcher_job=launcher)
    assert first_slice(whole, 4).launcher_job is None
    assert first_slice(whole, 5).launcher_job == launcher

"""Slices of plans: in order, and complete in the end."""

import attrs
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
    part = first_slice(whole, has_pods=True, limit=4)
    steps = [*whole.deleted_pods, *whole.services, *whole.pods]
    assert [*part.deleted_pods, *part.services, *part.pods] == steps[:4]
    assert part.has_more == (len(steps) > 4)


def test_plan_of_a_small_job_is_not_sliced() -> None:
    whole = Plan(JobStatus(), pods=(Replica("worker", 0),))
    assert first_slice(whole, has_pods=False) == whole


def test_job_of_a_launcher_is_created_with_the_last_pods() -> None:
    workers = tuple(make_job(training_job("JAXJob", Worker=5)).replicas)
    launcher = LauncherJobWrite(LauncherJobAction.CREATE)
    whole = Plan(JobStatus(), pods=workers, launcher_job=launcher)
    assert first_slice(whole, has_pods=True, limit=4).launcher_job is None
    assert first_slice(whole, has_pods=True, limit=5).launcher_job == launcher


def test_large_job_without_pods_gets_the_first_of_each_type_before_all_services() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=99))
    replicas = tuple(job.replicas)
    whole = Plan(JobStatus(), services=replicas, pods=replicas)
    part = first_slice(whole, has_pods=False)
    first = (Replica("master", 0), Replica("worker", 0))
    assert (part.services, part.pods, part.has_more) == (first, first, True)
    # The service of a first pod exists, but not the pod: the server may have rejected it.
    tried = attrs.evolve(whole, services=replicas[1:])
    part = first_slice(tried, has_pods=False)
    assert (part.services, part.pods) == (first[1:], first)
    assert first_slice(whole, has_pods=True) == whole

"""Slices of plans: in order, and complete in the end."""

from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.job import Replica
from dlctl.api.status import JobStatus
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.plan_slice import first_slice
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
    assert part.deleted_pods == whole.deleted_pods[:4]
    assert part.services == whole.services[: len(part.services)]
    assert part.pods == whole.pods[: len(part.pods)]
    count = deleted + services + pods
    assert len(part.deleted_pods) + len(part.services) + len(part.pods) == min(4, count)
    assert part.has_more == (count > 4)


def test_slice_has_as_many_pods_as_services() -> None:
    replicas = tuple(Replica("worker", index) for index in range(10))
    part = first_slice(Plan(JobStatus(), services=replicas, pods=replicas), 8)
    assert (len(part.services), len(part.pods)) == (4, 4)


def test_plan_of_a_small_job_is_not_sliced() -> None:
    whole = Plan(JobStatus(), pods=(Replica("worker", 0),))
    assert first_slice(whole) == whole

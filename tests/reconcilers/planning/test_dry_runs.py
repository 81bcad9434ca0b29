"""Dry runs of pods: before the many services of a new job, and of nothing else."""

from collections.abc import Sequence

import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import ObjectMeta
from dlctl.api.objects.pods import Pod, Service
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.planning.slices import first_slice
from tests.builders import NOW, make_job, make_pod, training_job

FIRST = [Replica("master", 0), Replica("worker", 0)]


def job_of(workers: int) -> Job:
    return make_job(training_job("PyTorchJob", Master=1, Worker=workers))


def plan_of(job: Job, *pods: Pod, services: Sequence[Service] = ()) -> Plan:
    observed = observe(job, Children(pods, services), NOW)
    return plan_job(job, observed, Desired(tuple(job.replicas)), NOW, PlanSettings())


def service(job: Job, replica: Replica) -> Service:
    return Service(metadata=ObjectMeta(name=job.service_name(replica), namespace="ml"))


def tried(job: Job, *pods: Pod, services: int = 0) -> list[Replica]:
    existing = [service(job, replica) for replica in list(job.replicas)[:services]]
    made = plan_of(job, *pods, services=existing)
    assert len(made.services) == job.total_replicas - services
    return sorted(made.dry_runs, key=str)


@pytest.mark.parametrize(("workers", "expected"), [(63, []), (64, FIRST), (2000, FIRST)])
def test_first_pod_of_each_type_of_a_large_new_job_is_tried(
    workers: int, expected: list[Replica]
) -> None:
    assert tried(job_of(workers)) == expected


def test_services_of_rejected_pods_do_not_end_the_trials() -> None:
    assert tried(job_of(200), services=2) == FIRST


def test_nothing_is_tried_again_once_there_are_many_services() -> None:
    assert tried(job_of(200), services=65) == []


def test_services_of_a_job_that_has_pods_are_created_without_a_trial() -> None:
    job = job_of(200)
    assert tried(job, make_pod(job, FIRST[1])) == []


def test_pods_that_are_tried_come_with_what_they_need() -> None:
    job = make_job(training_job("TFJob", PS=100, Worker=5))
    part = first_slice(plan_of(job), limit=10)
    tried = {Replica("ps", 0), Replica("worker", 0)}
    assert set(part.dry_runs) == set(part.services[:2]) == tried
    assert not part.pods
    assert part.needs_secrets, "a pod may be created"
    assert set(part.reduced_to(part.dry_runs).services) == tried

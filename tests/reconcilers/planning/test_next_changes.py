"""What of a plan is applied now."""

import pytest

from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.informers.store import Store
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.next_changes import StatusTiming, next_changes
from dlctl.reconcilers.planning.slices import MAX_CHANGES
from tests.builders import make_job, training_job


def applied_now(workers: int, *, may_defer_first: bool = True) -> Plan:
    job = make_job(training_job("JAXJob", Worker=workers))
    whole = Plan(JobStatus(JobPhase.CREATING), pods=tuple(job.replicas))
    timing = StatusTiming(job_age_s=0, since_write_s=60, may_defer_first=may_defer_first)
    return next_changes(job, whole, timing, Store[Pod](), Store[Service]())


@pytest.mark.parametrize(
    ("workers", "may_defer", "phase"),
    [
        pytest.param(4, True, JobPhase.NEW, id="small"),
        pytest.param(4, False, JobPhase.CREATING, id="small, and not for the first time"),
        pytest.param(MAX_CHANGES, True, JobPhase.CREATING, id="large"),
    ],
)
def test_first_status_of_a_small_job_waits_once(
    workers: int, may_defer: bool, phase: JobPhase
) -> None:
    now = applied_now(workers, may_defer_first=may_defer)
    assert (now.status.phase, len(now.pods), now.has_more) == (phase, workers, False)


def test_whether_the_first_status_waits_depends_on_all_children_not_on_those_created_now() -> None:
    now = applied_now(MAX_CHANGES + 1)
    assert (now.status.phase, len(now.pods), now.has_more) == (JobPhase.CREATING, MAX_CHANGES, True)

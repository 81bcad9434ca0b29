"""The plans for jobs whose spec is invalid or whose content cannot be processed."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.status.job_status import JobPhase
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.invalid_status import invalid_plan, malformed_plan
from tests.builders import NOW, bare_job, make_job, mxjob, observed_of

LATER = NOW + datetime.timedelta(minutes=1)
ERROR = "planning failed: KeyError: 'a'"
NOTE = EventNote("Warning", "MXJobInvalid", ERROR)


def created() -> Job:
    job = make_job()
    status, _ = status_transitions.running_status(job, observed_of(job), {}, NOW)
    return attrs.evolve(job, status=status, generation=2)


def malformed(job: Job, message: str = ERROR) -> Plan:
    return malformed_plan(job, message, LATER)


def test_malformed_job_keeps_its_state_and_is_retried() -> None:
    job = created()
    plan = malformed(job)
    assert (plan.status.phase, plan.status.observed_generation) == (JobPhase.CREATING, 2)
    assert [(c.type, c.reason, c.message) for c in plan.status.conditions] == [
        ("Waiting", "MXJobInvalid", ERROR),
        ("Created", "MXJobCreated", "MXJob linear is created."),
    ]
    assert plan == Plan(plan.status, notes=(NOTE,), requeue=True)


def test_known_error_is_neither_written_nor_recorded_again() -> None:
    job = created()
    reported = attrs.evolve(job, status=malformed(job).status)
    assert malformed(reported) == Plan(reported.status, requeue=True)
    assert [note.message for note in malformed(reported, "another").notes] == ["another"]


def test_invalid_job_no_longer_waits() -> None:
    job = created()
    waiting = attrs.evolve(job, status=malformed(job).status)
    failed = invalid_plan(waiting, "spec: is wrong", LATER).status
    assert [c.type for c in failed.conditions] == ["Created", "Failed"]


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        pytest.param(mxjob(), f"invalid job spec: {ERROR}", id="kubeflow.org"),
        pytest.param(
            mxjob(group="fioravanzo.org"), f"invalid job spec: {ERROR}", id="fioravanzo.org"
        ),
        pytest.param(bare_job(SCHEDULER=1), ERROR, id="bare list"),
    ],
)
def test_status_of_an_invalid_job_has_the_reason_of_its_form(
    wire: dict[str, Any], reason: str
) -> None:
    plan = invalid_plan(make_job(wire), ERROR, NOW)
    assert plan.status.reason == reason
    assert [c.message for c in plan.status.conditions] == [ERROR]
    assert plan.notes == (NOTE,)

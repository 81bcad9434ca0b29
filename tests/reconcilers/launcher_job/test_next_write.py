"""Which write the Job of a launcher needs next."""

import datetime
from typing import Any

import attrs
import pytest

from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState
from dlctl.reconcilers.launcher_job.next_write import (
    LauncherJobAction,
    LauncherJobWrite,
    next_write,
    suspension,
    ttl_write,
)
from tests.builders import NOW
from tests.reconcilers.launcher_job.builders import COMPLETE, batch_job, mpi_job

STARTED: dict[str, Any] = {"startTime": NOW - datetime.timedelta(minutes=1)}
LEAVING = {"deletionTimestamp": NOW}


def write(
    existing: BatchJob | None, *, suspended: bool = False, may_start: bool = True
) -> LauncherJobAction | None:
    job = mpi_job(suspended=suspended)
    planned = next_write(job, LauncherState(existing), may_start=may_start)
    assert planned is None or planned.existing == existing
    return planned.action if planned else None


@pytest.mark.parametrize(
    ("suspended", "may_start", "expected"),
    [
        pytest.param(False, True, LauncherJobAction.CREATE, id="may start"),
        pytest.param(False, False, None, id="waits"),
        pytest.param(True, True, LauncherJobAction.CREATE_SUSPENDED, id="suspended"),
        pytest.param(
            True, False, LauncherJobAction.CREATE_SUSPENDED, id="suspended while it waits"
        ),
    ],
)
def test_missing_job_is_created(
    suspended: bool, may_start: bool, expected: LauncherJobAction | None
) -> None:
    assert write(None, suspended=suspended, may_start=may_start) is expected


@pytest.mark.parametrize(
    ("existing", "may_start", "expected"),
    [
        pytest.param(batch_job(suspended=True), True, LauncherJobAction.RESUME, id="never started"),
        pytest.param(
            batch_job(suspended=True, **STARTED),
            True,
            LauncherJobAction.CLEAR_START_TIME,
            id="started",
        ),
        pytest.param(batch_job(suspended=True, **STARTED), False, None, id="waits for workers"),
        pytest.param(batch_job(**STARTED), True, None, id="runs"),
        pytest.param(batch_job(**STARTED), False, None, id="runs, and a worker is lost"),
        pytest.param(batch_job(COMPLETE, suspended=True), True, None, id="complete"),
        pytest.param(batch_job(suspended=True, metadata=LEAVING), True, None, id="leaving"),
    ],
)
def test_existing_job_is_resumed_once_it_may_start(
    existing: BatchJob, may_start: bool, expected: LauncherJobAction | None
) -> None:
    assert write(existing, may_start=may_start) is expected


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param(batch_job(**STARTED), LauncherJobAction.SUSPEND, id="runs"),
        pytest.param(batch_job(suspended=True), None, id="already suspended"),
        pytest.param(batch_job(COMPLETE), None, id="complete"),
        pytest.param(batch_job(metadata=LEAVING), None, id="leaving"),
    ],
)
def test_job_is_suspended_with_its_owner(
    existing: BatchJob, expected: LauncherJobAction | None
) -> None:
    assert write(existing, suspended=True) is expected
    stopped = suspension(LauncherState(existing))
    assert stopped == (LauncherJobWrite(expected, existing) if expected else None)


def test_job_of_an_incomplete_spec_is_only_suspended() -> None:
    partial = attrs.evolve(mpi_job(), is_partial=True)
    waiting = LauncherState(batch_job(suspended=True))
    assert next_write(partial, LauncherState(), may_start=True) is None
    assert next_write(partial, waiting, may_start=True) is None
    partial = attrs.evolve(mpi_job(suspended=True), is_partial=True)
    running = LauncherState(batch_job())
    planned = next_write(partial, running, may_start=True)
    assert planned == LauncherJobWrite(LauncherJobAction.SUSPEND, running.batch_job)


@pytest.mark.parametrize(
    ("wanted_s", "existing", "expected"),
    [
        pytest.param(60, batch_job(COMPLETE), LauncherJobAction.SET_TTL, id="not set"),
        pytest.param(0, batch_job(COMPLETE), LauncherJobAction.SET_TTL, id="zero"),
        pytest.param(60, batch_job(COMPLETE, ttl_s=60), None, id="set"),
        pytest.param(None, batch_job(COMPLETE), None, id="none"),
        pytest.param(60, batch_job(COMPLETE, metadata=LEAVING), None, id="leaving"),
        pytest.param(60, None, None, id="gone"),
    ],
)
def test_ended_job_gets_its_ttl(
    wanted_s: int | None, existing: BatchJob | None, expected: LauncherJobAction | None
) -> None:
    job = mpi_job(LauncherJob(ttl_after_finished_s=wanted_s))
    planned = ttl_write(job, LauncherState(existing))
    assert planned == (LauncherJobWrite(expected, existing) if expected else None)


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param(
            batch_job(ttl_s=0), LauncherJobAction.REMOVE_TTL, id="as mpi-operator sets it"
        ),
        pytest.param(batch_job(ttl_s=9), None, id="of somebody else"),
        pytest.param(batch_job(COMPLETE, ttl_s=0), None, id="ended"),
    ],
)
def test_job_that_runs_has_no_ttl_by_which_its_end_could_be_missed(
    existing: BatchJob, expected: LauncherJobAction | None
) -> None:
    job = mpi_job(LauncherJob(ttl_after_finished_s=0))
    planned = next_write(job, LauncherState(existing), may_start=True)
    assert planned == (LauncherJobWrite(expected, existing) if expected else None)

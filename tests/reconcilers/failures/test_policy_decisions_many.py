"""Very many failures that are seen together: few are judged in one plan, and none is forgotten."""

from collections.abc import Sequence
from itertools import pairwise

import attrs
import pytest

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import Pod
from dlctl.api.status.verdict import Attempt, Cause
from dlctl.reconcilers.failures.evidence import Evidence
from dlctl.reconcilers.failures.output_evidence import output_evidence
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.program_output.log_text import LogLine
from tests.reconcilers.failures.gangs import said
from tests.reconcilers.failures.policy_jobs import ANY_REPLICA, failure_reason, torch
from tests.reconcilers.failures.torch_jobs import causes, failed, planned, pods
from tests.reconcilers.program_output.outputs import GLOO_CLOSED, raised

MESSAGE = raised("ValueError: the loss is not finite").rjust(2_000, "-")


def ends(count: int, every_s: float, message: str = MESSAGE) -> JSON:
    """Return the ends of workers, one after the other."""
    return {f"worker{n}": said(message, failed(1, 30 + every_s * n, f"u{n}")) for n in range(count)}


def plans(job: Job, found: list[Pod], seconds: float) -> list[Plan]:
    """Return the plans up to the one that waits for nothing more."""
    made: list[Plan] = []
    while not made or made[-1].requeue_after_s == 0:
        assert len(made) < 100
        made.append(planned(job, found, seconds))
        job = attrs.evolve(job, status=made[-1].status)
    return made


def attempts_of(made: Sequence[Plan]) -> list[Attempt]:
    """Return all attempts that have ended, also those that the last status no longer lists."""
    found = {one.number: one for plan in made for one in plan.status.attempts}
    return [found[number] for number in sorted(found)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the last line of each output that is read from now on."""
    found: list[str] = []

    def counted(lines: Sequence[LogLine], exit_code: int | None) -> Evidence | None:
        found.append(lines[-1].text)
        return output_evidence(lines, exit_code)

    monkeypatch.setattr("dlctl.reconcilers.failures.first_cause.output_evidence", counted)
    return found


def test_all_plans_together_read_few_outputs(reads: list[str]) -> None:
    job = torch(ANY_REPLICA, limit=5_000, workers=1_000)
    plans(job, pods(job, **ends(1_000, 0.5)), 540)
    assert len(reads) <= 1_200


def test_one_plan_reads_no_more_outputs_of_a_larger_job(reads: list[str]) -> None:
    counts = []
    for count in (300, 900):
        job = torch(ANY_REPLICA, limit=5_000, workers=count)
        planned(job, pods(job, **ends(count, 5)), 30 + 5 * count + 10)
        counts.append(len(reads))
        reads.clear()
    assert counts[0] == counts[1]


@pytest.mark.parametrize("count", [9, 21, 70])
def test_each_of_many_failures_is_decided(count: int) -> None:
    job = torch(ANY_REPLICA, limit=5_000, workers=count)
    found = pods(job, **ends(count, 61))
    made = plans(job, found, 30 + 61 * count + 10)
    assert made[-1].status.counted_restarts == count
    verdicts = [one.verdict for one in attempts_of(made)]
    assert [each.replica for each in verdicts if each] == [f"worker-{n}" for n in range(count)]
    assert len(made[-1].deleted_pods) == count
    assert not any(plan.deleted_pods for plan in made[:-1])


def test_each_minute_of_failures_is_decided() -> None:
    job = torch(ANY_REPLICA, limit=5_000, workers=1_000)
    made = plans(job, pods(job, **ends(1_000, 0.5)), 540)
    times = [one.end_time for one in attempts_of(made) if one.end_time]
    assert made[-1].status.counted_restarts == len(times) == 9
    assert all((late - early).total_seconds() > 60 for early, late in pairwise(times))


def test_limit_of_restarts_ends_a_job_whose_failures_take_several_plans() -> None:
    job = torch(ANY_REPLICA, limit=30, workers=70)
    made = plans(job, pods(job, **ends(70, 61)), 4_400)
    assert failure_reason(attrs.evolve(job, status=made[-1].status)) == "ReachedMaxRestarts"
    assert made[-1].status.counted_restarts == 30


def test_failure_among_many_lost_peers_is_decided_by_itself() -> None:
    job = torch(ANY_REPLICA, limit=9, workers=300)
    found = ends(300, 2, GLOO_CLOSED)
    found["worker0"] = failed(3, 30, "u0")
    found["worker299"] = failed(137, 700, "u299", reason="OOMKilled")
    (*_, last) = plans(job, pods(job, **found), 710)
    decided = causes(attrs.evolve(job, status=last.status))
    assert decided == [(Cause.USER_CODE, "worker-0"), (Cause.OUT_OF_MEMORY, "worker-299")]
    assert last.status.counted_restarts == 2

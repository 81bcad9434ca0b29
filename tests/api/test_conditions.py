"""The rules of a job's list of conditions: order, exclusion, and what stays for good."""

import datetime

import pytest

from dlctl.api import conditions
from dlctl.api.conditions import Condition, holds, with_condition, without
from tests.builders import NOW

LATER = NOW + datetime.timedelta(minutes=1)


def condition(
    type_: str, *, status: bool = True, message: str = "", at: datetime.datetime = NOW
) -> Condition:
    return Condition(type_, status, f"MXJob{type_}", message, since=at, updated=at)


def types(stated: tuple[Condition, ...]) -> list[str]:
    return [c.type for c in stated]


def test_condition_stated_last_stands_last() -> None:
    stated = with_condition((), condition(conditions.CREATED))
    stated = with_condition(stated, condition(conditions.RUNNING))
    assert types(stated) == ["Created", "Running"]


def test_restating_a_condition_changes_nothing() -> None:
    stated = (condition(conditions.CREATED), condition(conditions.RUNNING))
    assert with_condition(stated, condition(conditions.RUNNING, at=LATER)) == stated


def test_new_message_updates_the_condition_but_not_since_when_it_holds() -> None:
    stated = (condition(conditions.RESTARTING, message="worker-0"),)
    (new,) = with_condition(stated, condition(conditions.RESTARTING, message="worker-1", at=LATER))
    assert (new.message, new.since, new.updated) == ("worker-1", NOW, LATER)


def test_condition_that_turns_false_holds_since_then() -> None:
    stated = (condition(conditions.BLOCKED),)
    (new,) = with_condition(stated, condition(conditions.BLOCKED, status=False, at=LATER))
    assert (new.status, new.since) == (False, LATER)


def test_running_and_restarting_exclude_each_other() -> None:
    running = with_condition((), condition(conditions.RUNNING))
    restarting = with_condition(running, condition(conditions.RESTARTING))
    assert types(restarting) == ["Restarting"]
    assert types(with_condition(restarting, condition(conditions.RUNNING))) == ["Running"]


@pytest.mark.parametrize("activity", [conditions.RUNNING, conditions.RESTARTING])
def test_ended_job_runs_no_more_nor_does_it_restart(activity: str) -> None:
    stated = with_condition((condition(activity),), condition(conditions.SUCCEEDED, at=LATER))
    assert types(stated) == [activity, "Succeeded"]
    assert (stated[0].status, stated[0].since) == (False, NOW)


def test_failed_job_stays_failed() -> None:
    stated = (condition(conditions.FAILED),)
    assert with_condition(stated, condition(conditions.RUNNING)) == stated
    assert with_condition(stated, condition(conditions.SUCCEEDED)) == stated


def test_condition_with_status_false_does_not_hold() -> None:
    stated = (condition(conditions.RUNNING, status=False),)
    assert not holds(stated, conditions.RUNNING)
    assert holds((condition(conditions.RUNNING),), conditions.RUNNING)


def test_condition_taken_back_leaves_no_trace() -> None:
    stated = (condition(conditions.CREATED), condition(conditions.BLOCKED))
    assert types(without(stated, conditions.BLOCKED)) == ["Created"]

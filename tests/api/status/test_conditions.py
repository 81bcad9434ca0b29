"""The rules of a job's conditions: order, exclusion, permanence."""

import datetime

import pytest

from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition, is_true, with_condition, without_condition
from tests.builders import NOW

LATER = NOW + datetime.timedelta(minutes=1)


def condition(
    type_: str, *, status: bool = True, message: str = "", at: datetime.datetime = NOW
) -> Condition:
    return Condition(
        type_, status, f"MXJob{type_}", message, last_transition_time=at, last_update_time=at
    )


def types(stated: tuple[Condition, ...]) -> list[str]:
    return [c.type for c in stated]


def test_condition_set_last_is_the_last_of_the_list() -> None:
    stated = with_condition((), condition(conditions.CREATED))
    stated = with_condition(stated, condition(conditions.RUNNING))
    assert types(stated) == ["Created", "Running"]


def test_setting_an_equal_condition_changes_nothing() -> None:
    stated = (condition(conditions.CREATED), condition(conditions.RUNNING))
    assert with_condition(stated, condition(conditions.RUNNING, at=LATER)) == stated


def test_new_message_leaves_the_transition_time() -> None:
    stated = (condition(conditions.RESTARTING, message="worker-0"),)
    (new,) = with_condition(stated, condition(conditions.RESTARTING, message="worker-1", at=LATER))
    assert (new.message, new.last_transition_time, new.last_update_time) == ("worker-1", NOW, LATER)


def test_condition_that_turns_false_has_a_new_transition_time() -> None:
    stated = (condition(conditions.WAITING),)
    (new,) = with_condition(stated, condition(conditions.WAITING, status=False, at=LATER))
    assert (new.status, new.last_transition_time) == (False, LATER)


def test_running_and_restarting_exclude_each_other() -> None:
    running = with_condition((), condition(conditions.RUNNING))
    restarting = with_condition(running, condition(conditions.RESTARTING))
    assert types(restarting) == ["Restarting"]
    assert types(with_condition(restarting, condition(conditions.RUNNING))) == ["Running"]


@pytest.mark.parametrize("activity", [conditions.RUNNING, conditions.RESTARTING])
def test_finished_job_is_neither_running_nor_restarting(activity: str) -> None:
    stated = with_condition((condition(activity),), condition(conditions.SUCCEEDED, at=LATER))
    assert types(stated) == [activity, "Succeeded"]
    assert (stated[0].status, stated[0].last_transition_time) == (False, NOW)


def test_failed_job_stays_failed() -> None:
    stated = (condition(conditions.FAILED),)
    assert with_condition(stated, condition(conditions.RUNNING)) == stated
    assert with_condition(stated, condition(conditions.SUCCEEDED)) == stated


def test_waiting_comes_first_since_the_last_condition_is_the_state() -> None:
    stated = (condition(conditions.CREATED), condition(conditions.RUNNING))
    waiting = with_condition(stated, condition(conditions.WAITING))
    assert types(waiting) == ["Waiting", "Created", "Running"]
    again = with_condition(waiting, condition(conditions.WAITING, message="another", at=LATER))
    assert types(again) == ["Waiting", "Created", "Running"]
    assert types(with_condition(again, condition(conditions.SUSPENDED)))[-1] == "Suspended"


def test_condition_with_status_false_is_not_true() -> None:
    stated = (condition(conditions.RUNNING, status=False),)
    assert not is_true(stated, conditions.RUNNING)
    assert is_true((condition(conditions.RUNNING),), conditions.RUNNING)


def test_removed_condition_leaves_no_trace() -> None:
    stated = (condition(conditions.CREATED), condition(conditions.WAITING))
    assert types(without_condition(stated, conditions.WAITING)) == ["Created"]

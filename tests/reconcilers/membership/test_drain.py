"""Departing workers: when their pods are deleted, and which of them were unused."""

import attrs
import pytest

from dlctl.api.objects.pods import Pod
from dlctl.api.status.membership import Membership
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.reconcilers.membership.drain import has_left, unused_workers
from dlctl.reconcilers.membership.hosts import write_task
from dlctl.reconcilers.membership.membership_state import MembershipState
from tests.reconcilers.membership.builders import (
    LISTED,
    ago,
    answered,
    make_state,
    reasons,
    removing,
    unchanged,
    worker_pod,
)

LEAVING = removing(1, is_ready=True)
# No longer listed, still a member.
UNLISTED = LISTED.with_hosts([0]).with_scaling(LEAVING)
WRITTEN = TaskOutcome(ago(60.0))


def written(state: MembershipState, outcome: TaskOutcome = WRITTEN) -> MembershipState:
    """Return the state with an outcome of writing its hosts."""
    task = write_task(state, state.membership)
    assert task is not None
    return attrs.evolve(state, outcomes={**state.outcomes, task: outcome})


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_pods_of_a_job_without_launcher_are_deleted_at_once() -> None:
    state = make_state(UNLISTED, launched=False)
    gone, plan = has_left(state, unchanged(state), LEAVING)
    assert (gone, names(plan.deleted_pods)) == (False, ["linear-worker-1"])


def test_launcher_is_not_inspected_before_it_has_the_hosts() -> None:
    state = make_state(UNLISTED)
    gone, plan = has_left(state, unchanged(state), LEAVING)
    assert (gone, plan.deleted_pods, plan.exec_tasks) == (False, (), frozenset())
    assert plan.requeue_after_s == 60.0


@pytest.mark.parametrize(
    ("outcome", "deleted", "retries"),
    [
        pytest.param(TaskOutcome(frozenset()), ["linear-worker-1"], 0, id="disconnected"),
        pytest.param(TaskOutcome(frozenset({"linear-worker-1"})), [], 1, id="in use"),
        pytest.param(TaskOutcome(error="no route"), [], 1, id="inspection failed"),
    ],
)
def test_pods_are_deleted_once_the_launcher_has_disconnected(
    outcome: TaskOutcome, deleted: list[str], retries: int
) -> None:
    state = written(make_state(UNLISTED))
    _, asked = has_left(state, unchanged(state), LEAVING)
    assert len(asked.exec_tasks) == 1
    assert asked.deleted_pods == ()

    state = attrs.evolve(
        state, outcomes={**state.outcomes, **dict.fromkeys(asked.exec_tasks, outcome)}
    )
    gone, plan = has_left(state, unchanged(state), LEAVING)
    assert not gone
    assert names(plan.deleted_pods) == deleted
    assert len(plan.retries) == retries


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(TaskOutcome(ago(30.0)), id="written half of the time ago"),
        pytest.param(TaskOutcome(error="no route", attempts=5), id="not written after retries"),
    ],
)
def test_pods_are_deleted_after_the_timeout_with_an_event(outcome: TaskOutcome) -> None:
    late = removing(1, since_s=60.0, is_ready=True)
    state = written(make_state(UNLISTED.with_scaling(late)), outcome)
    _, plan = has_left(state, unchanged(state), late)
    assert names(plan.deleted_pods) == ["linear-worker-1"]
    assert reasons(plan.notes) == ["TrainingJobWorkersInUse"]


@pytest.mark.parametrize(
    ("outcome", "wait_s"),
    [
        pytest.param(None, 30.0, id="not written"),
        pytest.param(TaskOutcome(error="no route", attempts=4), 30.0, id="retried"),
        pytest.param(TaskOutcome(ago(20.0)), 10.0, id="written late"),
    ],
)
def test_launcher_has_half_of_the_timeout_with_its_hosts(
    outcome: TaskOutcome | None, wait_s: float
) -> None:
    late = removing(1, since_s=600.0, is_ready=True)
    state = make_state(UNLISTED.with_scaling(late))
    state = written(state, outcome) if outcome else state
    gone, plan = has_left(state, unchanged(state), late)
    assert (gone, plan.deleted_pods, plan.notes) == (False, (), ())
    assert plan.requeue_after_s == wait_s


def test_pods_are_deleted_without_inspection_once_a_script_has_run() -> None:
    done = attrs.evolve(LEAVING, is_done=True)
    state = make_state(UNLISTED.with_scaling(done))
    _, plan = has_left(state, unchanged(state), done)
    assert names(plan.deleted_pods) == ["linear-worker-1"]


@pytest.mark.parametrize(
    ("pod", "gone"),
    [
        pytest.param(worker_pod(1, terminating=True), False, id="terminating"),
        pytest.param(None, True, id="gone"),
    ],
)
def test_workers_have_left_once_their_pods_are_gone(pod: Pod | None, gone: bool) -> None:
    state = make_state(UNLISTED, pods={1: pod})
    has_gone, plan = has_left(state, unchanged(state), LEAVING)
    assert (has_gone, plan.deleted_pods) == (gone, ())


CHECKED = LISTED.with_scaling(removing(1))


def ask(state: MembershipState, result: object, *, tries: int = 1) -> MembershipState:
    _, plan = unused_workers(state, unchanged(state), removing(1))
    return answered(state, plan, result, tries=tries)


def test_worker_is_unused_once_a_second_check_confirms_it() -> None:
    others = frozenset({"linear-worker-0"})
    state = make_state(CHECKED)
    assert unused_workers(state, unchanged(state), removing(1))[0] is None

    state = ask(state, others)
    assert unused_workers(state, unchanged(state), removing(1))[0] is None

    # The confirmation follows at once, so its first answer does not count.
    first = ask(state, others, tries=1)
    found, plan = unused_workers(first, unchanged(first), removing(1))
    assert (found, len(plan.retries)) == (None, 1)

    second = ask(state, others, tries=2)
    found, plan = unused_workers(second, unchanged(second), removing(1))
    assert (found, len(plan.retries)) == ((1,), 0)


@pytest.mark.parametrize(
    "used",
    [
        pytest.param(frozenset({"linear-worker-0", "linear-worker-1"}), id="in use"),
        pytest.param(frozenset(), id="none is in use"),
    ],
)
def test_no_worker_counts_as_unused(used: frozenset[str]) -> None:
    state = ask(make_state(CHECKED), used)
    assert unused_workers(state, unchanged(state), removing(1))[0] == ()


@pytest.mark.parametrize(
    ("tries", "unused"),
    [pytest.param(4, None, id="retried"), pytest.param(5, (1,), id="assumed")],
)
def test_failed_inspection_is_retried_and_then_the_worker_counts_as_unused(
    tries: int, unused: tuple[int, ...] | None
) -> None:
    state = make_state(CHECKED)
    for _ in range(2):
        _, plan = unused_workers(state, unchanged(state), removing(1))
        state = answered(state, plan, error="no route", tries=tries)
    assert unused_workers(state, unchanged(state), removing(1))[0] == unused


@pytest.mark.parametrize(
    ("membership", "launched"),
    [
        pytest.param(CHECKED, False, id="no launcher"),
        pytest.param(Membership(members=(0, 1), hosts=(0,)), True, id="never listed"),
    ],
)
def test_workers_that_the_launcher_cannot_use_are_not_inspected(
    membership: Membership, launched: bool
) -> None:
    state = make_state(membership, launched=launched)
    found, plan = unused_workers(state, unchanged(state), removing(1))
    assert (found, plan) == ((), unchanged(state))

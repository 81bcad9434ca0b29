"""Which workers the host file lists, and when the launcher is created."""

from collections.abc import Collection, Mapping
from typing import Final

import attrs
import pytest

from dlctl.api.objects.pods import Pod
from dlctl.api.policies.elasticity import AttachMode, Elasticity
from dlctl.api.status.membership import Membership
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.reconcilers.membership import hosts
from dlctl.reconcilers.membership.exec_output import ProbeResult
from dlctl.reconcilers.membership.exec_tasks import ProbeWorkers, WriteFiles
from dlctl.reconcilers.membership.membership_state import MembershipState
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import (
    LISTED,
    adding,
    ago,
    answered,
    by_scaler,
    make_state,
    reasons,
    removing,
    scaler_in,
    unchanged,
    worker_pod,
)

NOT_READY = worker_pod(1, ready_s=None)
NONE: Final[Mapping[str, str]] = {}
SCRIPTED = scaler_in(script="/leave.sh")


def listed(state: MembershipState) -> tuple[int, ...]:
    return hosts.update_hosts(state, unchanged(state)).membership.hosts


def probed(
    state: MembershipState, *answering: int, asked: Collection[int], why: Mapping[str, str] = NONE
) -> MembershipState:
    """Return the state after a probe of the workers."""
    _, plan = hosts.reachable(state, unchanged(state), asked)
    return answered(state, plan, ProbeResult(frozenset(state.pod_names(answering)), why))


def test_ready_workers_are_probed_and_unreachable_ones_again() -> None:
    state = make_state(LISTED.with_hosts([]), pods={1: NOT_READY})
    found, plan = hosts.reachable(state, unchanged(state), (0, 1))
    (task,) = plan.exec_tasks
    assert isinstance(task, ProbeWorkers)
    assert found == frozenset()
    assert task.workers == {"linear-worker-0"}
    assert hosts.is_probing(state, (0, 1))

    silent = probed(state, asked=(0, 1))
    found, plan = hosts.reachable(silent, unchanged(silent), (0, 1))
    assert found == frozenset()
    assert plan.retries == {task}

    answering = probed(state, 0, asked=(0, 1))
    found, plan = hosts.reachable(answering, unchanged(answering), (0, 1))
    assert found == {0}
    assert plan.retries == frozenset()


@pytest.mark.parametrize(
    ("state", "found"),
    [
        pytest.param(make_state(elasticity=Elasticity(AttachMode.KUBEXEC)), {0, 1}, id="kubexec"),
        pytest.param(make_state(launched=False), set(), id="no launcher"),
        pytest.param(make_state(pods={0: None, 1: NOT_READY}), set(), id="none is ready"),
        pytest.param(make_state(draining_nodes=frozenset({"node-a"})), set(), id="nodes drain"),
    ],
)
def test_no_worker_is_probed(state: MembershipState, found: set[int]) -> None:
    workers, plan = hosts.reachable(state, unchanged(state), (0, 1))
    assert workers == found
    assert plan == unchanged(state)
    assert not hosts.is_probing(state, (0, 1))


def test_message_says_why_workers_are_unreachable() -> None:
    state = make_state(pods={1: NOT_READY})
    state = probed(state, asked=(0, 1), why={"linear-worker-0": "refused"})
    assert hosts.unreachable_message(state, (0, 1)) == (
        "linear-worker-1 is not ready; linear-worker-0 does not answer: refused"
    )
    assert "the launcher is not running" in hosts.unreachable_message(
        make_state(launched=False), (0,)
    )


def test_writing_hosts_is_retried_until_the_launcher_has_them() -> None:
    state = make_state()
    asked = hosts.update_hosts(state, unchanged(state))
    (task,) = asked.exec_tasks
    assert isinstance(task, WriteFiles)
    assert (task.files, task.generation) == ((("hostfile", "0 1"),), LISTED.generation)
    assert not hosts.is_written(state, LISTED)

    failed = answered(state, asked, error="timeout")
    plan = hosts.update_hosts(failed, unchanged(failed))
    assert plan.retries == {task}
    assert reasons(plan.notes) == ["TrainingJobHostsNotDelivered"]
    assert not hosts.is_written(failed, LISTED)

    written = answered(state, asked)
    assert hosts.update_hosts(written, unchanged(written)).retries == frozenset()
    assert hosts.is_written(written, LISTED)


@pytest.mark.parametrize(
    ("membership", "result"),
    [
        pytest.param(LISTED, (0, 1), id="unchanged"),
        pytest.param(LISTED.retire([1]), (0,), id="retired"),
        pytest.param(Membership((0,), (0, 1)), (0,), id="no member"),
        pytest.param(LISTED.with_scaling(removing(1)), (0, 1), id="leaving, not yet checked"),
        pytest.param(LISTED.with_scaling(removing(1, is_ready=True)), (0,), id="leaving"),
        pytest.param(
            LISTED.with_scaling(removing(1, is_ready=True, **by_scaler(SCRIPTED))),
            (0, 1),
            id="leaving, script to run",
        ),
        pytest.param(
            LISTED.with_scaling(removing(1, is_ready=True, is_done=True, **by_scaler(SCRIPTED))),
            (0,),
            id="leaving, script has run",
        ),
        pytest.param(LISTED.with_evacuating(removing(1)), (0,), id="evacuating"),
    ],
)
def test_retired_and_departing_workers_are_not_listed(
    membership: Membership, result: tuple[int, ...]
) -> None:
    assert listed(make_state(membership, scalers=[SCRIPTED])) == result


@pytest.mark.parametrize(
    ("since_s", "result"),
    [
        pytest.param(0.0, (0, 1), id="initially"),
        pytest.param(29.0, (0, 1), id="within half the drain timeout"),
        pytest.param(30.0, (0,), id="later"),
    ],
)
def test_evacuating_worker_stays_listed_below_the_minimum(
    since_s: float, result: tuple[int, ...]
) -> None:
    membership = LISTED.with_evacuating(removing(1, since_s=since_s))
    assert listed(make_state(membership, elasticity=Elasticity(min_replicas=2))) == result


@pytest.mark.parametrize(
    ("ready_s", "result", "requeue_after_s"),
    [
        pytest.param(1.0, (0,), 4.0, id="waits for the others"),
        pytest.param(5.0, (0, 1), None, id="has waited"),
        pytest.param(-2.0, (0,), 7.0, id="its node's clock is ahead"),
        pytest.param(-3600.0, (0, 1), None, id="its node's clock is far ahead"),
    ],
)
def test_late_worker_waits_briefly_for_other_pending_workers(
    ready_s: float, result: tuple[int, ...], requeue_after_s: float | None
) -> None:
    membership = LISTED.add([2]).with_hosts([0])
    pods: dict[int, Pod | None] = {1: worker_pod(1, ready_s=ready_s), 2: None}
    state = probed(make_state(membership, pods=pods), 1, asked=(1, 2))
    plan = hosts.update_hosts(state, unchanged(state))
    assert (plan.membership.hosts, plan.requeue_after_s) == (result, requeue_after_s)


def test_late_workers_are_listed_at_once_if_none_is_pending() -> None:
    state = probed(make_state(LISTED.with_hosts([])), 0, 1, asked=(0, 1))
    assert listed(state) == (0, 1)


def test_only_the_scale_out_lists_its_workers() -> None:
    assert listed(make_state(LISTED.with_scaling(adding(2)))) == (0, 1)


@pytest.mark.parametrize(
    ("pods", "elasticity", "waited_s", "result"),
    [
        pytest.param({}, Elasticity(), 0.0, (0, 1), id="all ready"),
        pytest.param({1: None}, Elasticity(), 0.0, None, id="one is missing"),
        pytest.param({1: None}, Elasticity(), 120.0, (0,), id="enough for long enough"),
        pytest.param({1: None}, Elasticity(min_replicas=2), 120.0, None, id="too few"),
        pytest.param({}, Elasticity(min_replicas=3), 0.0, (0, 1), id="minimum above the members"),
        pytest.param({0: None, 1: None}, Elasticity(), 120.0, None, id="none"),
    ],
)
def test_launcher_is_created_with_the_ready_workers(
    pods: dict[int, Pod | None],
    elasticity: Elasticity,
    waited_s: float,
    result: tuple[int, ...] | None,
) -> None:
    job = read_job()
    job = attrs.evolve(job, status=attrs.evolve(job.status, start_time=ago(waited_s)))
    unlisted = LISTED.with_hosts([])
    state = make_state(unlisted, pods=pods, elasticity=elasticity, launched=False, job=job)
    plan = hosts.plan_launcher(state, unchanged(state))
    assert plan.create_launcher is (result is not None)
    assert plan.membership.hosts == (result or ())


def test_existing_launcher_is_not_created_again() -> None:
    state = make_state()
    assert hosts.plan_launcher(state, unchanged(state)) == unchanged(state)


def test_hosts_of_another_generation_do_not_count_as_written() -> None:
    state = make_state()
    task = hosts.write_task(state, LISTED)
    assert task is not None
    state = attrs.evolve(state, outcomes={task: TaskOutcome()})
    assert hosts.is_written(state, LISTED)
    assert not hosts.is_written(state, attrs.evolve(LISTED, generation=8))

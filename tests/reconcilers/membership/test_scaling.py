"""Scale operations: what starts, advances and ends them."""

from typing import Any

import attrs
import pytest

from dlctl.api.conditions import Condition
from dlctl.api.elastic import Elasticity, Membership, ScaleOperation, Scaler, ScalerPhase
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.reconcilers.membership import scaling
from dlctl.reconcilers.membership.exec_output import ProbeResult
from dlctl.reconcilers.membership.exec_tasks import RunScript
from dlctl.reconcilers.membership.hosts import write_task
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import (
    LISTED,
    adding,
    answered,
    by_scaler,
    make_state,
    removing,
    scaler_in,
    scaler_out,
    unchanged,
    worker_pod,
)

OUT, IN = scaler_out(), scaler_in()
SCRIPTED_OUT = scaler_out(script="/join.sh", backoffLimit=1)


def phases(plan: MembershipPlan) -> dict[str, ScalerPhase]:
    return {uid: update.status.phase for uid, update in plan.scaler_updates.items()}


def conditions(plan: MembershipPlan) -> list[str]:
    return [condition.type for condition in plan.conditions]


@pytest.mark.parametrize(
    ("desired", "operation"),
    [
        pytest.param(2, None, id="unchanged"),
        pytest.param(4, adding(2, 3), id="more"),
        pytest.param(1, removing(1), id="fewer"),
    ],
)
def test_changed_replica_count_starts_an_operation(
    desired: int, operation: ScaleOperation | None
) -> None:
    state = make_state(desired_replicas=desired)
    plan = scaling.start(state, unchanged(state))
    assert plan.membership.scaling == operation
    assert plan.membership.observed_replicas == desired
    assert conditions(plan) == ([] if operation is None else ["Scaling"])


@pytest.mark.parametrize(
    ("scaler", "operation"),
    [
        pytest.param(OUT, adding(2, 3, **by_scaler(OUT)), id="ScaleOut"),
        pytest.param(IN, removing(1, **by_scaler(IN)), id="ScaleIn"),
    ],
)
def test_scaler_starts_an_operation(scaler: Scaler, operation: ScaleOperation) -> None:
    state = make_state(scalers=[scaler])
    plan = scaling.start(state, unchanged(state))
    assert plan.membership == LISTED.with_scaling(operation)
    assert phases(plan) == {scaler.uid: ScalerPhase.SCALING}
    assert plan.scaler_updates[scaler.uid].status.pods == state.pod_names(operation.workers)


def test_changed_replica_count_precedes_scalers() -> None:
    state = make_state(desired_replicas=3, scalers=[OUT])
    plan = scaling.start(state, unchanged(state))
    assert plan.membership.scaling == adding(2)
    assert plan.scaler_updates == {}


def test_rejected_and_invalid_scalers_do_not_block_the_next() -> None:
    many = scaler_out("many", toAdd={"count": 9})
    invalid = scaler_out("invalid", toAdd={})
    state = make_state(scalers=[many, invalid, OUT], elasticity=Elasticity(max_replicas=4))
    plan = scaling.start(state, unchanged(state))
    assert plan.membership.scaling == adding(2, 3, **by_scaler(OUT))
    assert phases(plan) == {many.uid: ScalerPhase.FAILED, OUT.uid: ScalerPhase.SCALING}
    assert conditions(plan) == ["Scaling", "ScaleFailed", "Scaling"]


def adopted(scaler: Scaler, *, pods: tuple[str, ...], foreign: bool = True) -> Membership:
    job = read_job()
    status = attrs.evolve(job.status, written_by_other_operator=foreign)
    running = attrs.evolve(scaler.status, phase=ScalerPhase.SCALING, pods=pods)
    scalers = [attrs.evolve(scaler, status=running)]
    state = make_state(job=attrs.evolve(job, status=status), scalers=scalers)
    return scaling.adopt(state, unchanged(state)).membership


def test_operation_of_another_operator_is_adopted_with_its_workers() -> None:
    operation = removing(0, **by_scaler(IN))
    assert adopted(IN, pods=("linear-worker-0",)) == LISTED.with_scaling(operation)


@pytest.mark.parametrize(
    ("pods", "foreign"),
    [
        pytest.param(("linear-worker-0",), False, id="status is ours"),
        pytest.param((), True, id="nothing chosen"),
        pytest.param(("linear-worker-0", "linear-worker-1"), True, id="too few would be left"),
    ],
)
def test_operation_is_not_adopted(pods: tuple[str, ...], foreign: bool) -> None:
    assert adopted(IN, pods=pods, foreign=foreign) == LISTED


# Scale-in


def test_departing_workers_are_listed_until_they_have_been_inspected() -> None:
    operation = removing(1)
    state = make_state(LISTED.with_scaling(operation))
    plan = scaling.scale_in(state, unchanged(state), operation)
    assert len(plan.exec_tasks) == 1
    assert plan.membership.hosts == (0, 1)

    known = answered(state, plan, frozenset({"linear-worker-0", "linear-worker-1"}))
    plan = scaling.scale_in(known, unchanged(known), operation)
    assert plan.membership.hosts == (0,)
    assert plan.membership.scaling == attrs.evolve(operation, ready=True)


def test_departing_workers_are_listed_until_their_script_has_run() -> None:
    scaler = scaler_in(script="/leave.sh")
    operation = removing(1, ready=True, **by_scaler(scaler))
    state = make_state(LISTED.with_scaling(operation), scalers=[scaler])
    plan = scaling.scale_in(state, unchanged(state), operation)
    (task,) = plan.exec_tasks
    assert isinstance(task, RunScript)
    assert task.workers == ("linear-worker-1:1",)

    ran = answered(state, plan)
    plan = scaling.scale_in(ran, unchanged(ran), operation)
    assert plan.membership == LISTED.with_scaling(attrs.evolve(operation, done=True))
    assert plan.deleted_pods == ()


def test_operation_ends_when_the_departing_pods_are_gone() -> None:
    operation = removing(1, ready=True, unused=(1,), **by_scaler(IN))
    membership = LISTED.with_hosts([0]).with_scaling(operation)
    state = make_state(membership, pods={1: None}, scalers=[IN])
    plan = scaling.scale_in(state, unchanged(state), operation)
    assert plan.membership.members == (0,)
    assert plan.membership.retired == {1}
    assert plan.membership.scaling is None
    assert phases(plan) == {IN.uid: ScalerPhase.SUCCEEDED}
    assert conditions(plan) == ["ScaleSucceeded"]


# Scale-out


def step(state: MembershipState) -> MembershipPlan:
    operation = state.membership.scaling
    assert operation is not None
    return scaling.scale_out(state, unchanged(state), operation)


def reaching(state: MembershipState, *workers: int) -> MembershipState:
    return answered(state, step(state), ProbeResult(frozenset(state.pod_names(workers))))


def scaling_out(scaler: Scaler, *workers: int, since_s: float = 0.0, **fields: Any) -> Membership:
    return LISTED.with_scaling(adding(*workers, since_s=since_s, **by_scaler(scaler), **fields))


def test_new_workers_are_listed_at_once_if_all_are_reachable() -> None:
    state = make_state(scaling_out(OUT, 2, 3), scalers=[OUT])
    plan = step(reaching(state, 2, 3))
    assert plan.membership.hosts == (0, 1, 2, 3)
    assert plan.membership.members == (0, 1)
    assert plan.membership.scaling == adding(2, 3, done=True, **by_scaler(OUT))


def test_new_workers_are_probed_when_all_are_ready() -> None:
    pods = {3: worker_pod(3, ready_s=None)}
    state = make_state(scaling_out(OUT, 2, 3), scalers=[OUT], pods=pods)
    plan = step(state)
    assert plan.exec_tasks == frozenset()
    assert plan.waits_s == (600.0,)


@pytest.mark.parametrize(
    ("min_count", "workers"),
    [pytest.param(1, (2,), id="enough"), pytest.param(None, None, id="too few")],
)
def test_workers_ready_in_time_join_if_they_reach_the_minimum(
    min_count: int | None, workers: tuple[int, ...] | None
) -> None:
    scaler = attrs.evolve(OUT, min_count=min_count)
    membership = scaling_out(OUT, 2, 3, since_s=600.0)
    state = make_state(membership, scalers=[scaler], pods={3: worker_pod(3, ready_s=None)})
    plan = step(reaching(state, 2))
    scaling_on = plan.membership.scaling
    assert (scaling_on and scaling_on.workers) == workers
    assert phases(plan) == ({} if workers else {OUT.uid: ScalerPhase.FAILED})


def test_workers_ready_in_time_are_probed_after_a_controller_restart() -> None:
    membership = scaling_out(OUT, 2, 3, since_s=600.0)
    plan = step(make_state(membership, scalers=[OUT]))
    assert len(plan.exec_tasks) == 1
    assert plan.membership == membership


def test_script_runs_for_persisted_workers_and_before_they_are_listed() -> None:
    state = make_state(scaling_out(SCRIPTED_OUT, 2, 3), scalers=[SCRIPTED_OUT])
    plan = step(reaching(state, 2, 3))
    assert plan.membership == scaling_out(SCRIPTED_OUT, 2, 3, ready=True)

    state = make_state(plan.membership, scalers=[SCRIPTED_OUT])
    plan = step(state)
    (task,) = plan.exec_tasks
    assert isinstance(task, RunScript)
    assert plan.membership.hosts == (0, 1)

    plan = step(answered(state, plan))
    assert plan.membership.hosts == (0, 1, 2, 3)
    assert [c.type for c in plan.scaler_updates[SCRIPTED_OUT.uid].status.conditions] == [
        "ScriptExecuted"
    ]


@pytest.mark.parametrize(
    ("tries", "failed"), [pytest.param(1, False, id="retried"), pytest.param(2, True, id="failed")]
)
def test_failed_script_is_retried_up_to_its_limit(tries: int, failed: bool) -> None:
    membership = scaling_out(SCRIPTED_OUT, 2, 3, ready=True)
    state = make_state(membership, scalers=[SCRIPTED_OUT])
    plan = step(answered(state, step(state), error="exit 1", tries=tries))
    assert bool(plan.retries) is not failed
    assert plan.membership.scaling == (None if failed else membership.scaling)
    assert phases(plan) == ({SCRIPTED_OUT.uid: ScalerPhase.FAILED} if failed else {})


@pytest.mark.parametrize(
    ("failures", "failed"), [pytest.param(0, False, id="retried"), pytest.param(1, True, id="over")]
)
def test_worker_that_fails_before_use_is_recreated(failures: int, failed: bool) -> None:
    pods = {2: worker_pod(2, exit_code=1)}
    membership = scaling_out(SCRIPTED_OUT, 2, 3, failures=failures)
    state = make_state(membership, scalers=[SCRIPTED_OUT], pods=pods)
    plan = step(state)
    assert len(plan.deleted_pods) == (0 if failed else 1)
    assert plan.membership.scaling == (
        None if failed else adding(2, 3, failures=1, **by_scaler(SCRIPTED_OUT))
    )


def test_deleted_scaler_ends_its_operation() -> None:
    plan = step(make_state(scaling_out(OUT, 2, 3)))
    assert plan.membership == LISTED
    assert conditions(plan) == ["ScaleFailed"]


@pytest.mark.parametrize(
    ("since_s", "written", "phase"),
    [
        pytest.param(0.0, False, None, id="waits"),
        pytest.param(0.0, True, ScalerPhase.SUCCEEDED, id="written"),
        pytest.param(660.0, False, ScalerPhase.FAILED, id="not written in time"),
    ],
)
def test_operation_ends_when_the_launcher_has_the_new_hosts(
    since_s: float, written: bool, phase: ScalerPhase | None
) -> None:
    operation = adding(2, 3, since_s=since_s, done=True, **by_scaler(OUT))
    membership = LISTED.with_hosts(range(4)).with_scaling(operation)
    state = make_state(membership, scalers=[OUT])
    if written and (task := write_task(state, membership)):
        state = attrs.evolve(state, outcomes={task: TaskOutcome()})
    plan = step(state)
    assert phases(plan) == ({OUT.uid: phase} if phase else {})
    assert plan.membership.members == ((0, 1, 2, 3) if phase else (0, 1))


def test_workers_of_a_changed_count_join_and_late_ones_follow() -> None:
    membership = LISTED.with_scaling(adding(2, 3))
    pods = {3: worker_pod(3, ready_s=None)}
    state = make_state(membership, pods=pods)
    assert step(state).membership == membership

    late = LISTED.with_scaling(adding(2, 3, since_s=600.0))
    plan = step(reaching(make_state(late, pods=pods), 2))
    assert plan.membership.members == (0, 1, 2, 3)
    assert plan.membership.hosts == (0, 1, 2)
    assert plan.membership.scaling is None


# Other ends


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        pytest.param(adding(2, 3), (0, 1, 2, 3), id="adding"),
        pytest.param(removing(1), (0,), id="removing"),
        pytest.param(None, (0, 1), id="none"),
    ],
)
def test_operation_of_a_job_that_loses_all_pods_completes_with_them(
    operation: ScaleOperation | None, members: tuple[int, ...]
) -> None:
    state = make_state(LISTED.with_scaling(operation))
    plan = scaling.complete(state, unchanged(state))
    assert plan.membership.members == members
    assert plan.membership.scaling is None


@pytest.mark.parametrize(
    ("scaler", "operation", "phase", "members"),
    [
        pytest.param(OUT, adding(2, 3), ScalerPhase.SUCCEEDED, (0, 1, 2, 3), id="added"),
        pytest.param(OUT, adding(2, 3), ScalerPhase.FAILED, (0, 1), id="not added"),
        pytest.param(IN, removing(1), ScalerPhase.SUCCEEDED, (0,), id="removed"),
        pytest.param(IN, removing(1), ScalerPhase.FAILED, (0, 1), id="not removed"),
    ],
)
def test_job_follows_a_result_already_in_its_scaler(
    scaler: Scaler, operation: ScaleOperation, phase: ScalerPhase, members: tuple[int, ...]
) -> None:
    operation = attrs.evolve(operation, **by_scaler(scaler))
    ended = Condition(phase, True, "Reason", "why", NOW, NOW)
    status = attrs.evolve(scaler.status, phase=phase, conditions=(ended,))
    finished = attrs.evolve(scaler, status=status)
    state = make_state(LISTED.with_scaling(operation), finished_scalers=[finished])
    plan = scaling.finish(state, unchanged(state), operation)
    assert plan.membership.members == members
    assert plan.membership.scaling is None
    assert plan.conditions == (ended,)
    assert plan.scaler_updates == {}


def test_operation_starts_at_the_time_of_its_plan() -> None:
    state = make_state(desired_replicas=3)
    operation = scaling.start(state, unchanged(state)).membership.scaling
    assert operation is not None
    assert operation.since == NOW

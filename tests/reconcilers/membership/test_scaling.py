"""Scale operations: what starts, advances and ends them."""

import attrs
import pytest

from dlctl.api.objects.scalers import ScaleFailure, Scaler, ScalerPhase
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.conditions import Condition
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.reconcilers.membership import scaler_status, scaling
from dlctl.reconcilers.membership.exec_tasks import RunScript
from tests.builders import NOW
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import (
    LISTED,
    adding,
    answered,
    by_scaler,
    conditions,
    make_state,
    phases,
    removing,
    scaler_in,
    scaler_out,
    unchanged,
)

OUT, IN = scaler_out(), scaler_in()


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


def test_result_of_an_operation_precedes_the_job_although_its_scaler_has_become_invalid() -> None:
    invalid = attrs.evolve(IN, invalid_reason="edited")
    operation = removing(1, **by_scaler(IN))
    state = make_state(LISTED.with_scaling(operation), scalers=[invalid])
    plan = scaler_status.rejected(unchanged(state), invalid, ScaleFailure("edited"))
    assert not plan.scaler_updates[IN.uid].precedes_job
    plan = scaling.end_operation(state, plan, operation)
    # The job is about to forget the operation.
    assert plan.scaler_updates[IN.uid].precedes_job


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
    assert plan.membership.scaling == attrs.evolve(operation, is_ready=True)


def test_departing_workers_are_listed_until_their_script_has_run() -> None:
    scaler = scaler_in(script="/leave.sh")
    operation = removing(1, is_ready=True, **by_scaler(scaler))
    state = make_state(LISTED.with_scaling(operation), scalers=[scaler])
    plan = scaling.scale_in(state, unchanged(state), operation)
    (task,) = plan.exec_tasks
    assert isinstance(task, RunScript)
    assert task.workers == ("linear-worker-1:1",)

    ran = answered(state, plan)
    plan = scaling.scale_in(ran, unchanged(ran), operation)
    assert plan.membership == LISTED.with_scaling(attrs.evolve(operation, is_done=True))
    assert plan.deleted_pods == ()


def test_operation_ends_when_the_departing_pods_are_gone() -> None:
    operation = removing(1, is_ready=True, unused=(1,), **by_scaler(IN))
    membership = LISTED.with_hosts([0]).with_scaling(operation)
    state = make_state(membership, pods={1: None}, scalers=[IN])
    plan = scaling.scale_in(state, unchanged(state), operation)
    assert plan.membership.members == (0,)
    assert plan.membership.retired == {1}
    assert plan.membership.scaling is None
    assert phases(plan) == {IN.uid: ScalerPhase.SUCCEEDED}
    assert conditions(plan) == ["ScaleSucceeded"]


# Scale-out


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

"""The whole membership plan: which rules apply in which phase, and in what order."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.scalers import ScalerPhase
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.job_status import JobPhase
from dlctl.api.status.membership import Membership
from dlctl.reconcilers.membership.exec_tasks import WriteFiles
from dlctl.reconcilers.membership.planner import plan_membership, with_planned_members
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import (
    LISTED,
    adding,
    by_scaler,
    make_state,
    removing,
    scaler_in,
    scaler_out,
    worker_pod,
)

OUT = scaler_out()
INDEXES = st.frozensets(st.integers(0, 4))
DOUBLY_BUSY = LISTED.with_scaling(adding(2)).with_evacuating(removing(0))


def test_steady_job_needs_only_its_hosts() -> None:
    state = make_state()
    plan = plan_membership(state)
    assert plan.membership == LISTED
    assert [type(task) for task in plan.exec_tasks] == [WriteFiles]
    assert (plan.notes, plan.deleted_pods, plan.requeue_after_s) == ((), (), None)
    assert plan.scaler_updates == {}
    assert not plan.create_launcher


@pytest.mark.parametrize("phase", [JobPhase.CLEAN_UP, JobPhase.DONE])
def test_finished_job_ends_its_operations_and_fails_its_scalers(phase: JobPhase) -> None:
    plan = plan_membership(make_state(DOUBLY_BUSY, phase=phase, scalers=[OUT]))
    assert plan.membership == LISTED
    assert plan.scaler_updates[OUT.uid].status.phase is ScalerPhase.FAILED
    assert plan.exec_tasks == frozenset()


@pytest.mark.parametrize("phase", [JobPhase.SUSPENDED, JobPhase.RESTARTING])
def test_stopped_job_completes_its_operations_and_lists_no_host(phase: JobPhase) -> None:
    plan = plan_membership(make_state(DOUBLY_BUSY.retire([1]), phase=phase))
    assert plan.membership.members == (1, 2)
    assert plan.membership.hosts == ()
    assert plan.membership.retired == frozenset()
    assert plan.membership.scaling is plan.membership.evacuating is None
    assert plan.exec_tasks == frozenset()


def test_new_scaler_is_acknowledged_and_an_invalid_one_fails() -> None:
    invalid = scaler_out("invalid", toAdd={})
    operation = adding(4, **by_scaler(scaler_in("other")))
    scalers = [OUT, invalid, scaler_in("other")]
    plan = plan_membership(make_state(LISTED.with_scaling(operation), scalers=scalers))
    status = plan.scaler_updates[OUT.uid].status
    assert [c.type for c in status.conditions] == ["Created"]
    assert status.phase is ScalerPhase.NEW
    assert plan.scaler_updates[invalid.uid].status.phase is ScalerPhase.FAILED


def test_scaler_of_a_persisted_operation_is_set_to_started() -> None:
    operation = adding(2, 3, **by_scaler(OUT))
    plan = plan_membership(make_state(LISTED.with_scaling(operation), scalers=[OUT]))
    assert plan.scaler_updates[OUT.uid].status.phase is ScalerPhase.SCALING


def test_operation_ends_when_its_scaler_has_a_result() -> None:
    failed = attrs.evolve(OUT, status=attrs.evolve(OUT.status, phase=ScalerPhase.FAILED))
    operation = adding(2, 3, **by_scaler(OUT))
    plan = plan_membership(make_state(LISTED.with_scaling(operation), finished_scalers=[failed]))
    assert plan.membership == LISTED


def test_failed_worker_is_replaced_and_unlisted_in_one_decision() -> None:
    job = read_job(worker={"restartPolicy": "OnFailure"})
    state = make_state(
        pods={1: worker_pod(1, exit_code=1)}, job=job, elasticity=Elasticity(replace_failed=True)
    )
    plan = plan_membership(state)
    assert plan.membership.members == (0, 2)
    assert plan.membership.hosts == (0,)
    assert plan.membership.retired == {1}
    assert list(plan.restarts) == ["worker-2"]


@pytest.mark.parametrize(
    ("membership", "launched", "members"),
    [
        pytest.param(LISTED.with_hosts([]), False, (0, 1, 2), id="before the launcher"),
        pytest.param(LISTED, False, (0, 1), id="launcher is due"),
        pytest.param(LISTED, True, (0, 1), id="launched: by an operation"),
    ],
)
def test_members_follow_the_spec_before_the_launcher_is_created(
    membership: Membership, launched: bool, members: tuple[int, ...]
) -> None:
    state = make_state(membership, launched=launched, desired_replicas=3, phase=JobPhase.CREATING)
    assert plan_membership(state).membership.members == members


def test_launcher_is_created_with_all_workers_and_conditions_report_it() -> None:
    state = make_state(LISTED.with_hosts([]), launched=False, phase=JobPhase.CREATING)
    plan = plan_membership(state)
    assert plan.create_launcher
    assert plan.membership.hosts == (0, 1)
    assert [c.type for c in plan.conditions] == ["WorkersCreated", "WorkersReady"]


def test_progress_is_reported_once() -> None:
    state = make_state()
    plan = plan_membership(state)
    assert [c.type for c in plan.conditions] == ["WorkersCreated", "LauncherCreated"]

    job = with_planned_members(state.job, plan)
    assert plan_membership(attrs.evolve(state, job=job)).conditions == ()


def test_replicas_are_the_members_and_those_joining_or_departing() -> None:
    state = make_state(desired_replicas=4)
    job = with_planned_members(state.job, plan_membership(state))
    worker = job.replica_spec("worker")
    assert worker is not None
    assert tuple(worker.indexes) == (0, 1, 2, 3)
    assert job.status.membership == plan_membership(state).membership


@given(
    members=INDEXES,
    hosts=INDEXES,
    gone=INDEXES,
    draining=st.booleans(),
    desired=st.integers(1, 6),
    launched=st.booleans(),
    replaced=st.booleans(),
)
def test_plan_is_pure_and_lists_only_live_workers(
    members: frozenset[int],
    hosts: frozenset[int],
    gone: frozenset[int],
    draining: bool,
    desired: int,
    launched: bool,
    replaced: bool,
) -> None:
    membership = Membership(observed_replicas=2).add(members).with_hosts(hosts & members)
    state = make_state(
        membership,
        pods=dict.fromkeys(gone & members),
        launched=launched,
        desired_replicas=desired,
        draining_nodes=frozenset({"node-a"} if draining else ()),
        elasticity=Elasticity(replace_failed=replaced),
    )
    plan = plan_membership(state)
    assert plan == plan_membership(state)
    after = plan.membership
    if launched:
        assert not set(after.hosts) & after.retired
        assert set(after.hosts) <= set(after.present)
    assert after.generation >= membership.generation
    assert (after.generation == membership.generation) is (after.hosts == membership.hosts)
    assert plan.retries <= plan.exec_tasks
    assert after.retired <= gone | membership.retired

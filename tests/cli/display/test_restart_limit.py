import argparse

import attrs
import pytest

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.progress import ContainerExit, ContainerRun, JobProgress, ReplicaProgress
from dlctl.cli.display.restart_limit import max_restarts, replica_beyond
from dlctl.local.node.scheduling_filters import rejection
from tests.local.node.builders import GPU, make_container, make_node, make_pod

JOB = JobProgress("mxjob", ObjectKey("ml", "linear"), phase=JobPhase.RUNNING)


def found(limit: int | None, phase: str, restarts: int, **job: object) -> bool:
    replica = ReplicaProgress("worker-0", "worker", phase=phase, restarts=restarts)
    changed = attrs.evolve(JOB, replicas=(replica,), **job)  # type: ignore[arg-type]
    return replica_beyond(changed, limit) is replica


@pytest.mark.parametrize(
    ("limit", "phase", "restarts", "given_up"),
    [
        pytest.param(3, "Running", 3, False, id="within"),
        pytest.param(3, "Running", 4, True, id="beyond"),
        pytest.param(3, "CrashLoopBackOff", 2, False, id="waits for the last restart"),
        pytest.param(3, "CrashLoopBackOff", 3, True, id="waits for one too many"),
        pytest.param(0, "Running", 0, False, id="none, and none needed"),
        pytest.param(0, "Failed", 0, False, id="none, and none follows"),
        pytest.param(0, "CrashLoopBackOff", 0, True, id="none, but one is due"),
        pytest.param(None, "CrashLoopBackOff", 99, False, id="unlimited"),
    ],
)
def test_replica_is_given_up_once_it_needs_more_restarts_than_allowed(
    limit: int | None, phase: str, restarts: int, given_up: bool
) -> None:
    assert found(limit, phase, restarts) is given_up


def test_lost_replica_counts_once_the_controller_restarts_it() -> None:
    assert not found(0, "Lost", 0)
    assert found(0, "Lost", 0, notice="worker-0 is restarted in 10 s")


@pytest.mark.parametrize(("limit", "given_up"), [(3, True), (None, False)])
def test_replica_whose_program_cannot_be_executed_is_given_up_at_once(
    limit: int | None, given_up: bool
) -> None:
    end = ContainerExit(ContainerRun("uid-1", "mxnet"), 128, not_executed=True)
    replica = ReplicaProgress("worker-0", "worker", phase="CrashLoopBackOff", exits=(end,))
    job = attrs.evolve(JOB, replicas=(replica,))
    assert (replica_beyond(job, limit) is replica) is given_up
    # Where nothing restarts it, the job has an outcome of its own.
    failed = attrs.evolve(JOB, replicas=(attrs.evolve(replica, phase="Failed"),))
    assert replica_beyond(failed, limit) is None


def test_job_that_has_finished_has_its_own_outcome() -> None:
    assert not found(0, "Running", 5, is_deleted=True)


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("12", 12), ("unlimited", None)])
def test_limit_is_a_number_or_unlimited(text: str, limit: int | None) -> None:
    assert max_restarts(text) == limit


@pytest.mark.parametrize("text", ["-1", "many", "", "1.5"])
def test_other_limits_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write a number or unlimited"):
        max_restarts(text)


@pytest.mark.parametrize(("gpus", "used", "given_up"), [(0, 0, True), (1, 0, True), (2, 2, False)])
def test_replica_that_needs_more_gpus_than_there_are_is_given_up(
    gpus: int, used: int, given_up: bool
) -> None:
    pod = make_pod(containers=[make_container(resources={"limits": {GPU: "2"}})])
    assert waits_in_vain(rejection(pod, make_node(gpus=gpus), {GPU: used}, {GPU})) is given_up


def test_replica_for_a_node_with_other_labels_is_given_up() -> None:
    needed = [{"key": "accelerator", "operator": "NotIn", "values": ["none"]}]
    needed.append({"key": "accelerator", "operator": "Exists"})
    terms = {"nodeSelectorTerms": [{"matchExpressions": needed}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    for spec in ({"nodeSelector": {"a": "b"}}, {"affinity": {"nodeAffinity": affinity}}):
        pod = make_pod(containers=[make_container()], **spec)
        assert waits_in_vain(rejection(pod, make_node(), {}, set()))


def waits_in_vain(message: str) -> bool:
    replica = ReplicaProgress("worker-0", "worker", phase="Pending", waiting_message=message)
    return replica_beyond(attrs.evolve(JOB, replicas=(replica,)), 3) is replica

import argparse
import datetime

import attrs
import pytest

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ContainerExit, ContainerRun, ReplicaProgress
from dlctl.cli.display.restart_limit import max_restarts, replica_beyond
from dlctl.local.node.scheduling_filters import rejection
from tests.builders import NOW
from tests.local.node.builders import GPU, make_container, make_node, make_pod

JOB = JobProgress("mxjob", ObjectKey("ml", "linear"), phase=JobPhase.RUNNING)


def found(
    limit: int | None, state: str, restarts: int, init_restarts: int = 0, **job: object
) -> bool:
    replica = ReplicaProgress(
        "worker-0", "worker", phase=state, restarts=restarts, init_restarts=init_restarts
    )
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


INIT_LOOPS = ReplicaProgress(
    "worker-0",
    "worker",
    phase="CrashLoopBackOff",
    restarts=3,
    init_restarts=3,
    init_run=ContainerRun("uid-1", "wait", 3),
    ended=NOW,
)


def started(name: str, phase: str) -> ReplicaProgress:
    minute = datetime.timedelta(minutes=1)
    return ReplicaProgress(name, name.rpartition("-")[0], phase=phase, started=NOW - minute)


def test_init_containers_that_only_wait_for_each_other_are_given_up() -> None:
    other = attrs.evolve(INIT_LOOPS, name="worker-1", phase="PodInitializing", restarts=0)
    assert replica_beyond(attrs.evolve(JOB, replicas=(other, INIT_LOOPS)), 3) is INIT_LOOPS


@pytest.mark.parametrize(
    ("others", "given_up"),
    [
        pytest.param([], True, id="alone"),
        pytest.param(["Running"], False, id="another runs"),
        pytest.param(["CrashLoopBackOff"], False, id="another is restarted"),
        pytest.param(["Succeeded", "Failed"], True, id="no other runs any more"),
    ],
)
def test_init_container_may_exit_while_another_replica_runs(
    others: list[str], given_up: bool
) -> None:
    job = attrs.evolve(JOB, replicas=(*(started("ps-0", phase) for phase in others), INIT_LOOPS))
    assert replica_beyond(job, 3) is (INIT_LOOPS if given_up else None)


@pytest.mark.parametrize(("ended_s", "given_up"), [(-1, True), (1, False)])
def test_init_container_tries_again_after_another_replica_has_ended(
    ended_s: int, given_up: bool
) -> None:
    ended = NOW + datetime.timedelta(seconds=ended_s)
    master = attrs.evolve(started("master-0", "Succeeded"), ended=ended)
    job = attrs.evolve(JOB, replicas=(master, INIT_LOOPS))
    assert replica_beyond(job, 3) is (INIT_LOOPS if given_up else None)


@pytest.mark.parametrize(
    ("phase", "restarts", "given_up"),
    [("Running", 9, False), ("CrashLoopBackOff", 12, True), ("CrashLoopBackOff", 11, False)],
)
def test_restarts_of_init_containers_do_not_count_once_the_program_has_started(
    phase: str, restarts: int, given_up: bool
) -> None:
    assert found(3, phase, restarts, init_restarts=9) is given_up


def test_job_that_has_finished_has_its_own_outcome() -> None:
    assert not found(0, "Running", 5, is_deleted=True)
    assert not found(0, "Running", 5, phase=JobPhase.CLEAN_UP)


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

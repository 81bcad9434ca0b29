"""Which replica of a gang is blamed, and that no replica which only followed is."""

from typing import Any

import attrs
import pytest

from dlctl.api.status.verdict import MAX_COLLATERAL, Cause
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from tests.builders import NOW
from tests.reconcilers.failures.gangs import (
    JAX_JOB,
    disrupted,
    ended,
    failed_replica,
    unhealthy_node,
    verdict_of,
)
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised, torchrun

_NAMES = ["master-0", *(f"worker-{index}" for index in range(7))]


def gang(
    culprit: FailedReplica, code: int, output: str, *, before_s: float = 2
) -> list[FailedReplica]:
    """Return the culprit and all others, which end before it was seen to end."""
    others = (name for name in _NAMES if name != str(culprit.replica))
    return [
        *(failed_replica(name, ended(code, output, after_s=-before_s)) for name in others),
        culprit,
    ]


_COLLATERAL = {
    "NCCL remote error": (1, outputs.NCCL_REMOTE),
    "NCCL system error": (1, outputs.NCCL_SYSTEM),
    "gloo": (1, outputs.GLOO_CLOSED),
    "gloo under torchrun": (1, torchrun(0, 1, before=outputs.GLOO_CLOSED)),
    "torchrun without traceback": (1, torchrun(0, 1)),
    "torchrun with SIGABRT": (1, torchrun(0, -6)),
    "torchrun with SIGTERM": (1, torchrun(0, -15)),
    "torchrun stopped": (1, outputs.SIGNALLED),
    "watchdog": (134, outputs.WATCHDOG),
    "TCPStore": (134, outputs.TCP_STORE),
    "JAX": (134, outputs.JAX_PEER),
    "JAX with SIGSEGV": (139, outputs.JAX_PEER),
    "Horovod": (1, outputs.HOROVOD_PEER),
    "SIGTERM": (143, ""),
    "SIGABRT": (134, ""),
    "connection reset": (1, raised("ConnectionResetError: [Errno 104] Connection reset by peer")),
    "broken pipe": (1, raised("BrokenPipeError: [Errno 32] Broken pipe")),
    "rendezvous timeout": (1, raised("RuntimeError: Socket Timeout")),
    "absent clients": (
        1,
        raised("RuntimeError: Timed out after 31 seconds waiting for clients. 1/8 clients joined."),
    ),
    "barrier": (
        1,
        raised("RuntimeError: [Rank 0]: Rank 4 failed to pass monitoredBarrier in 4000 ms"),
    ),
    "gloo timeout": (1, raised("RuntimeError: Application timeout caused pair closure")),
    "rendezvous": (
        1,
        raised("torch.distributed.elastic.rendezvous.api.RendezvousClosedError"),
    ),
}
_CULPRITS = {
    "out of memory": (ended(137, reason="OOMKilled"), Cause.OUT_OF_MEMORY),
    "killed": (ended(137), Cause.UNKNOWN),
    "crashed": (ended(139), Cause.USER_CODE),
    "exited": (ended(42), Cause.USER_CODE),
    "exception": (ended(1, raised("ValueError: nan")), Cause.USER_CODE),
    "exception under torchrun": (
        ended(1, torchrun(5, 1, before=raised("ValueError: nan"))),
        Cause.USER_CODE,
    ),
    "killed under torchrun": (ended(1, torchrun(5, -9)), Cause.UNKNOWN),
    "CUDA out of memory": (ended(1, outputs.CUDA_OOM), Cause.OUT_OF_MEMORY),
    "ECC error": (ended(1, outputs.ECC), Cause.HARDWARE),
    "unobserved": (ended(137, reason="ContainerStatusUnknown"), Cause.NODE),
}


@pytest.mark.parametrize("collateral", _COLLATERAL)
@pytest.mark.parametrize("culprit", _CULPRITS)
def test_collateral_is_not_blamed_even_if_it_ended_first(culprit: str, collateral: str) -> None:
    state, cause = _CULPRITS[culprit]
    found = verdict_of(*gang(failed_replica("worker-4", state), *_COLLATERAL[collateral]))
    assert (found.cause, found.replica) == (cause, "worker-4")
    assert found.collateral_count == 7
    assert found.collateral == ("master-0", "worker-0", "worker-1", "worker-2", "worker-3")


@pytest.mark.parametrize("collateral", _COLLATERAL)
@pytest.mark.parametrize(
    ("status", "cause"),
    [
        pytest.param(
            {"reason": "Evicted", "message": "low on memory"}, Cause.EVICTION, id="evicted"
        ),
        pytest.param(disrupted("PreemptionByScheduler"), Cause.PREEMPTION, id="preempted"),
        pytest.param(disrupted("DeletionByTaintManager"), Cause.NODE, id="dead node"),
        pytest.param({"reason": "Terminated"}, Cause.NODE, id="node shut down"),
    ],
)
def test_disrupted_pod_is_blamed_for_all(
    status: dict[str, Any], cause: Cause, collateral: str
) -> None:
    culprit = failed_replica("worker-4", ended(143), **status)
    found = verdict_of(*gang(culprit, *_COLLATERAL[collateral]))
    assert (found.cause, found.replica, found.collateral_count) == (cause, "worker-4", 7)


@pytest.mark.parametrize("collateral", _COLLATERAL)
def test_unhealthy_node_is_blamed_for_all(collateral: str) -> None:
    culprit = failed_replica("worker-4", ended(1), faulty_node=unhealthy_node("XIDErrors: 79"))
    found = verdict_of(*gang(culprit, *_COLLATERAL[collateral]))
    assert (found.cause, found.replica) == (Cause.HARDWARE, "worker-4")


@pytest.mark.parametrize("collateral", _COLLATERAL)
def test_pod_that_is_being_deleted_is_blamed_without_a_termination(collateral: str) -> None:
    culprit = attrs.evolve(
        failed_replica("worker-4", phase="Running", **disrupted("PreemptionByScheduler")),
        termination=None,
    )
    found = verdict_of(*gang(culprit, *_COLLATERAL[collateral]))
    assert (found.cause, found.replica) == (Cause.PREEMPTION, "worker-4")


@pytest.mark.parametrize("collateral", _COLLATERAL)
def test_deleted_pod_is_blamed_by_default(collateral: str) -> None:
    deleted = {"deletionTimestamp": NOW.isoformat(), "deletionGracePeriodSeconds": 30}
    culprit = attrs.evolve(
        failed_replica("worker-4", phase="Running", metadata=deleted), termination=None
    )
    found = verdict_of(*gang(culprit, *_COLLATERAL[collateral]))
    assert (found.cause, found.replica, found.confidence) == (Cause.PLATFORM, "worker-4", "Low")
    with_cause = verdict_of(
        culprit, failed_replica("worker-2", ended(1, raised("ValueError: nan")))
    )
    assert with_cause.replica == "worker-2"


@pytest.mark.parametrize("name", _COLLATERAL)
def test_collateral_alone_is_no_strong_verdict(name: str) -> None:
    code, output = _COLLATERAL[name]
    found = verdict_of(*(failed_replica(each, ended(code, output)) for each in _NAMES))
    assert found.confidence in ("Low", "Medium")
    assert not (found.confidence == "Medium" and found.cause.is_infrastructure)


def test_first_of_equal_causes_is_blamed() -> None:
    found = verdict_of(
        failed_replica("worker-0", ended(1, raised("ValueError: a"), after_s=2)),
        failed_replica("worker-1", ended(1, raised("ValueError: b"), after_s=0)),
        failed_replica("worker-2", ended(1, raised("ValueError: c"), after_s=1)),
    )
    assert (found.replica, found.message) == ("worker-1", "ValueError: b")


def test_jax_process_that_died_is_blamed_for_its_peers() -> None:
    found = verdict_of(
        *(
            failed_replica(f"worker-{n}", ended(134, outputs.JAX_PEER), job=JAX_JOB)
            for n in (0, 1, 2)
        ),
        failed_replica("worker-3", ended(1, raised("ValueError: nan"), after_s=9), job=JAX_JOB),
        job=JAX_JOB,
    )
    assert (found.replica, found.rank, found.message) == ("worker-3", 3, "ValueError: nan")


def test_many_replicas_are_counted_and_a_few_are_named() -> None:
    found = verdict_of(*(failed_replica(name, ended(1)) for name in _NAMES))
    assert (len(found.collateral), found.collateral_count) == (MAX_COLLATERAL, 7)

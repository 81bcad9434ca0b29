"""Whose output is read in gangs with more replicas than are read."""

from typing import Any

import pytest

from dlctl.api.status.verdict import Cause, Verdict
from tests.builders import make_job, training_job
from tests.reconcilers.failures.gangs import ended, failed_replica, verdict_of
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised

JOB = make_job(training_job("PyTorchJob", Master=1, Worker=99))
RETRIED = "store: connect failed: Connection refused, trying again\n"
STEPS = "".join(f"step {number}: loss 0.1\n" for number in range(70))
BUG = raised("ValueError: nan")


def verdict(others: tuple[int, str], root: dict[str, Any]) -> Verdict:
    """Return the verdict on a gang that ends within a second, its root as the last."""
    peers = (failed_replica(f"worker-{n}", ended(*others), job=JOB) for n in range(98))
    return verdict_of(*peers, failed_replica("worker-98", root, job=JOB), job=JOB)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((143, "got SIGTERM, saving\n"), id="stopped"),
        pytest.param((134, "terminate called\n"), id="aborted"),
        pytest.param((134, outputs.WATCHDOG), id="watchdog"),
        pytest.param((134, outputs.TCP_STORE), id="aborted without a peer"),
        pytest.param((1, outputs.GLOO_CLOSED), id="lost a peer"),
        pytest.param((1, outputs.NCCL_REMOTE), id="lost a peer by NCCL"),
    ],
)
@pytest.mark.parametrize(
    "output",
    [
        pytest.param(BUG, id="exception"),
        pytest.param(RETRIED + BUG, id="exception soon after a retry"),
        pytest.param(RETRIED + STEPS + BUG, id="exception long after a retry"),
    ],
)
def test_exception_is_read_before_what_proves_less(others: tuple[int, str], output: str) -> None:
    found = verdict(others, ended(1, output))
    assert (found.replica, found.message) == ("worker-98", "ValueError: nan")


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((143, "got SIGTERM, saving\n"), id="stopped"),
        pytest.param((1, outputs.GLOO_CLOSED), id="lost a peer"),
    ],
)
def test_cause_of_an_abort_is_read_before_what_proves_less(others: tuple[int, str]) -> None:
    found = verdict(others, ended(134, outputs.ECC))
    assert (found.replica, found.cause) == ("worker-98", Cause.HARDWARE)


def test_first_of_equal_replicas_is_blamed_whatever_it_says() -> None:
    found = verdict_of(
        failed_replica("worker-0", ended(42, "epoch 3")), failed_replica("worker-1", ended(42))
    )
    assert found.replica == "worker-0"


def test_stopped_replicas_are_blamed_for_nothing_that_another_has_caused() -> None:
    found = verdict((143, "got SIGTERM, saving\n"), ended(1, RETRIED))
    assert found.replica == "worker-98"

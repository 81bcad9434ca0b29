"""Verdicts of any text and of large gangs: bounded, and in a bounded time."""

import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlctl.api.verdict import Cause
from dlctl.reconcilers.program_output.torchrun import recovered_exit_code
from tests.builders import make_job, training_job
from tests.reconcilers.failures.gangs import ended, member, verdict_of
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised, torchrun

_OUTPUTS = [
    *(value for value in vars(outputs).values() if isinstance(value, str)),
    torchrun(3, -9, others=[(4, 1), (5, -6)]),
    torchrun(3, 1, traceback="ValueError: nan"),
    outputs.open_mpi_signal(3, "linear-worker-1"),
    outputs.prrte_signal(3, "linear-worker-1"),
    outputs.mpi_exit("[[1,1],1]", 3),
    outputs.hydra("linear-worker-1", 9),
    outputs.horovodrun("linear-worker-1[0]"),
]
# Cut and joined anywhere, and with anything in between.
_PARTS = st.one_of(
    st.builds(
        lambda text, start, end: text[start:end],
        st.sampled_from(_OUTPUTS), st.integers(0, 2000), st.integers(0, 4000),
    ),
    st.text(st.characters(), max_size=200),
    st.binary(max_size=200).map(lambda data: data.decode(errors="surrogateescape")),
)  # fmt: skip
_TEXTS = st.lists(_PARTS, max_size=6).map("".join)


@settings(deadline=None, max_examples=200)
@given(_TEXTS, st.integers(-1, 256), st.booleans())
@example("\u202e\x1b[2J\x00" * 100, 1, True)
def test_any_output_has_a_bounded_verdict(output: str, code: int, is_log: bool) -> None:
    # Statuses are UTF-8.
    valid = output.encode(errors="replace").decode()
    message, log = ("", output) if is_log else (valid, "")
    found = verdict_of(member("worker-1", ended(code or 1, message), log=log))
    assert len(found.message) <= 600
    shown = set(found.message) - {"\n", "\t"}
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert "\u202e" not in shown
    assert found.rank is None or 0 <= found.rank < 10_000_000
    assert isinstance(recovered_exit_code(1, output), int)


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("a" * 200_000, id="one long line"),
        pytest.param("\n" * 200_000, id="empty lines"),
        pytest.param("[1,1]<stderr>:" * 20_000, id="tags"),
        pytest.param("A." * 100_000 + "Error: x", id="long type"),
        pytest.param("  rank      : " * 20_000, id="fields"),
        pytest.param("Abort(" * 40_000, id="reports in a line"),
        pytest.param("noticed that process rank\n" * 10_000, id="reports"),
        pytest.param("MPI_ABORT was invoked on rank 1 in communicator \n" * 5_000, id="aborts"),
        pytest.param(
            "detected that one or more processes exited with non-zero status, thus causing the job"
            " to be terminated. The first process to do so was: Process name: [,,,,,\n" * 2_000,
            id="process names",
        ),
        pytest.param("Failures:\n" + outputs.failure(1, 2, 3) * 1_000, id="summaries"),
        pytest.param("Traceback (most recent call last)\nE: x\n" * 8_000, id="tracebacks"),
        pytest.param("\x1b[" + "0;" * 100_000, id="escape sequence"),
        pytest.param(outputs.NCCL_REMOTE * 500, id="collateral"),
    ],
)
def test_hostile_output_is_read_in_a_short_time(output: str) -> None:
    failed = member("worker-1", ended(1, output), log=output)
    start = time.process_time()
    verdict_of(failed)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("", id="silent"),
        pytest.param(outputs.NCCL_REMOTE[-2048:], id="collateral"),
        pytest.param(torchrun(0, 1, before=outputs.GLOO_CLOSED)[-2048:], id="torchrun"),
        pytest.param(raised("ValueError: all the same"), id="same exception"),
    ],
)
def test_verdict_about_a_large_gang_is_quick(output: str) -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=4999))
    others = [member(f"worker-{n}", ended(1, output), job=job) for n in range(4998)]
    culprit = member("worker-4998", ended(137, reason="OOMKilled"), job=job)
    start = time.process_time()
    found = verdict_of(*others, culprit, job=job)
    assert (found.cause, found.replica) == (Cause.OUT_OF_MEMORY, "worker-4998")
    assert time.process_time() - start < 2


def test_reports_in_the_logs_of_many_members_are_read_in_a_short_time() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=99))
    log = "MPI_ABORT was invoked on rank 1 in communicator \n" * 2_000
    members = [member(f"worker-{n}", ended(1), job=job, log=log) for n in range(99)]
    start = time.process_time()
    verdict_of(*members, job=job)
    assert time.process_time() - start < 1.5


def test_exception_is_found_among_thousands_that_lost_their_peer_in_the_same_second() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=999))
    others = [member(f"worker-{n}", ended(1, outputs.GLOO_CLOSED), job=job) for n in range(998)]
    culprit = member("worker-998", ended(1, raised("ValueError: nan")), job=job)
    found = verdict_of(*others, culprit, job=job)
    assert (found.replica, found.message, found.collateral_count) == (
        "worker-998", "ValueError: nan", 998,
    )  # fmt: skip


def test_first_that_lost_its_peer_is_named_if_none_has_a_cause() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=99))
    members = [member(f"worker-{n}", ended(1, outputs.GLOO_CLOSED), job=job) for n in range(99)]
    found = verdict_of(*members, job=job)
    assert (found.cause, found.replica, found.confidence) == (Cause.UNKNOWN, "worker-0", "Low")

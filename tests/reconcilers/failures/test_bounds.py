"""Verdicts of any text and of large gangs: bounded in size, and in time by their size."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.program_output.torchrun import recovered_exit_code
from tests.builders import make_job, training_job
from tests.reconcilers.failures.gangs import ended, failed_replica, verdict_of
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised, torchrun
from tests.support.cost_growth import cost_growth

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
    found = verdict_of(failed_replica("worker-1", ended(code or 1, message), log=log))
    assert len(found.message) <= 600
    shown = set(found.message) - {"\n", "\t"}
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert "\u202e" not in shown
    assert found.rank is None or 0 <= found.rank < 10_000_000
    assert isinstance(recovered_exit_code(1, output), int)


@pytest.mark.parametrize(
    "text_of",
    [
        pytest.param(lambda n: "a" * 200 * n, id="one long line"),
        pytest.param(lambda n: "\n" * 8 * n, id="empty lines"),
        pytest.param(lambda n: "[1,1]<stderr>:" * 20 * n, id="tags"),
        pytest.param(lambda n: "A." * 100 * n + "Error: x", id="long type"),
        pytest.param(lambda n: "  rank      : " * 20 * n, id="fields"),
        pytest.param(lambda n: "Abort(" * 40 * n, id="reports in a line"),
        pytest.param(lambda n: "noticed that process rank\n" * 10 * n, id="reports"),
        pytest.param(
            lambda n: "MPI_ABORT was invoked on rank 1 in communicator \n" * 5 * n, id="aborts"
        ),
        pytest.param(
            lambda n: (
                "detected that one or more processes exited with non-zero status, thus causing the"
                " job to be terminated. The first process to do so was: Process name: [,,,,,\n" * n
            ),
            id="process names",
        ),
        pytest.param(lambda n: "Failures:\n" + outputs.failure(1, 2, 3) * n, id="summaries"),
        pytest.param(
            lambda n: "Traceback (most recent call last)\nE: x\n" * 4 * n, id="tracebacks"
        ),
        pytest.param(lambda n: "\x1b[" + "0;" * 100 * n, id="escape sequence"),
        pytest.param(lambda n: outputs.NCCL_REMOTE * (n // 2), id="collateral"),
    ],
)
def test_time_to_read_hostile_output_grows_no_faster_than_its_size(
    text_of: Callable[[int], str],
) -> None:
    def read(size: int) -> None:
        text = text_of(size)
        verdict_of(failed_replica("worker-1", ended(1, text), log=text))

    # Four times as much is not yet cut off.
    assert cost_growth(read, small=50) < 5


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("", id="silent"),
        pytest.param(outputs.NCCL_REMOTE[-2048:], id="collateral"),
        pytest.param(torchrun(0, 1, before=outputs.GLOO_CLOSED)[-2048:], id="torchrun"),
        pytest.param(raised("ValueError: all the same"), id="same exception"),
    ],
)
def test_time_for_the_verdict_about_a_gang_grows_no_faster_than_the_gang(output: str) -> None:
    def judge(count: int) -> None:
        job = make_job(training_job("PyTorchJob", Master=1, Worker=count))
        others = [
            failed_replica(f"worker-{n}", ended(1, output), job=job) for n in range(count - 1)
        ]
        last = f"worker-{count - 1}"
        culprit = failed_replica(last, ended(137, reason="OOMKilled"), job=job)
        found = verdict_of(*others, culprit, job=job)
        assert (found.cause, found.replica) == (Cause.OUT_OF_MEMORY, last)

    assert cost_growth(judge, small=500) < 10


def test_number_of_logs_that_are_read_does_not_grow_with_the_gang() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=128))
    log = "MPI_ABORT was invoked on rank 1 in communicator \n" * 2_000

    def judge(count: int) -> None:
        logged = [failed_replica(f"worker-{n}", ended(1), job=job, log=log) for n in range(count)]
        verdict_of(*logged, job=job)

    # No more of them are read.
    assert cost_growth(judge, small=32) < 2.5


def test_exception_is_found_among_thousands_that_lost_their_peer_in_the_same_second() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=999))
    others = [
        failed_replica(f"worker-{n}", ended(1, outputs.GLOO_CLOSED), job=job) for n in range(998)
    ]
    culprit = failed_replica("worker-998", ended(1, raised("ValueError: nan")), job=job)
    found = verdict_of(*others, culprit, job=job)
    assert (found.replica, found.message, found.collateral_count) == (
        "worker-998", "ValueError: nan", 998,
    )  # fmt: skip


def test_first_that_lost_its_peer_is_named_if_none_has_a_cause() -> None:
    job = make_job(training_job("PyTorchJob", Master=1, Worker=99))
    losers = [
        failed_replica(f"worker-{n}", ended(1, outputs.GLOO_CLOSED), job=job) for n in range(99)
    ]
    found = verdict_of(*losers, job=job)
    assert (found.cause, found.replica, found.confidence) == (Cause.UNKNOWN, "worker-0", "Low")

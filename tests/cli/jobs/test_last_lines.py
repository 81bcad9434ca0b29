"""The end of a failed program's output, as ``dlctl why`` shows it."""

from dlctl.cli.jobs.describe import last_lines


def test_long_lines_of_a_log_are_shortened() -> None:
    first, last = last_lines(b"x" * 10_000_000 + b"\nValueError: too large\n")
    assert set(first) == {"x"}
    assert len(first) <= 1000
    assert last == "ValueError: too large"


def test_last_ten_lines_are_shown_without_control_sequences() -> None:
    log = b"".join(b"\x1b[31mline %d\n" % number for number in range(20))
    assert last_lines(log) == [f"line {number}" for number in range(10, 20)]

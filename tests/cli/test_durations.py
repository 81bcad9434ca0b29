import pytest

from dlctl.cli.durations import describe_duration, duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5", 1.5), ("1m", 60), ("1m30s", 90), ("2h", 7200), ("1h5", 3605)],
)
def test_duration_is_read_in_each_of_its_spellings(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.62, "0.6 s"),
        (1.5, "1.5 s"),
        (12.4, "12 s"),
        (59.9, "1m0s"),
        (90, "1m30s"),
        (7260, "2h1m"),
    ],
)
def test_duration_is_described_in_its_largest_units(seconds: float, text: str) -> None:
    assert describe_duration(seconds) == text

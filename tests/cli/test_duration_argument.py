import pytest

from dlctl.cli.duration_argument import duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5", 1.5), ("1m", 60), ("1m30s", 90), ("2h", 7200), ("1h5", 3605)],
)
def test_duration_is_read_in_each_of_its_spellings(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds

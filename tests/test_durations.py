import pytest

from dlctl.durations import human_duration, precise_duration


@pytest.mark.parametrize(
    ("elapsed_s", "text"),
    [
        pytest.param(0, "0s"),
        pytest.param(119, "119s"),
        pytest.param(120, "2m"),
        pytest.param(150, "2m30s"),
        pytest.param(599, "9m59s"),
        pytest.param(3600, "60m"),
        pytest.param(3 * 3600 + 60, "3h1m"),
        pytest.param(47 * 3600, "47h"),
        pytest.param(49 * 3600, "2d1h"),
        pytest.param(9 * 86400, "9d"),
        pytest.param(800 * 86400, "2y70d"),
        pytest.param(-5, "<invalid>"),
    ],
)
def test_duration_has_the_units_of_kubectl(elapsed_s: float, text: str) -> None:
    assert human_duration(elapsed_s) == text


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
def test_short_duration_has_tenths(seconds: float, text: str) -> None:
    assert precise_duration(seconds) == text

"""Times are what a real server takes for them; with the pattern in CRDs, what Go can parse."""

from itertools import product

import pytest

from dlctl.dialects.value_formats import TIME_SCHEMA, invalid_reason
from dlctl.local.apiserver.schemas.formats import CHECKS
from dlctl.local.apiserver.schemas.patterns import matches

DAYS = ("2026-02-28", "2024-02-29", "0000-02-29", "2026-02-29", "2026-2-28", "20260228", "")
CLOCKS = ("12:00:00", "23:59:59", "24:00:00", "12:60:00", "12:00:60", "1:00:00", "1t:00:00")
FRACTIONS = ("", ".5", ".123456789", ",5", "x5", ".", "+5")
ZONES = ("Z", "z", "", "+01:00", "-23:59", "+24:00", "+29:59", "+00:60", "+0100", "+0t:00", "Z\n")
TEXTS = [
    f"{day}{between}{clock}{fraction}{zone}{after}"
    for day, between, clock, fraction, zone, after in product(
        DAYS, ("T", "t", " "), CLOCKS, FRACTIONS, ZONES, ("", "t", "T00:00:00Z")
    )
]


def test_pattern_of_times_leaves_what_go_parses_of_their_format() -> None:
    is_time = CHECKS[str(TIME_SCHEMA["format"])]
    times = [text for text in TEXTS if is_time(text)]
    pattern = str(TIME_SCHEMA["pattern"])
    found = {text for text in times if matches(text, pattern)}
    assert found == {text for text in times if not invalid_reason(text, "time")}
    assert {"2026-02-28T12:00:00Z", "2024-02-29T23:59:59.5-23:59"} <= found < set(times)


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        pytest.param("2026-02-28t12:00:00z", True, id="lower case"),
        pytest.param("2026-02-28T12:00:00,5Z", True, id="any character before a fraction"),
        pytest.param("2026-02-28T12:00:00+29:59", True, id="zone that does not exist"),
        pytest.param("0000-02-29T12:00:00Z", True, id="year 0"),
        pytest.param("2026-02-28T12:00:00Ztomorrow", True, id="text after a t"),
        pytest.param("2026-02-28 12:00:00Z", False, id="space"),
        pytest.param("2026-02-29T12:00:00Z", False, id="day that does not exist"),
        pytest.param("2026-02-28T24:00:00Z", False, id="end of a day"),
        pytest.param("2026-02-28T12:00:60Z", False, id="leap second"),
        pytest.param("2026-02-28T12:00:00", False, id="no zone"),
        pytest.param("2026-02-28T12:00:00Z\n", False, id="line break"),
        pytest.param("2026-2-28T12:00:00Z", False, id="one digit"),
    ],
)
def test_format_of_times_is_that_of_a_real_server(text: str, *, is_time: bool) -> None:
    assert CHECKS["date-time"](text) == is_time

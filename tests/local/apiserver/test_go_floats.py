"""Floats as a real API server prints them in its messages."""

import pytest

from dlctl.local.apiserver.go_floats import as_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (0.000123, "0.000123"),
        (0.00000123, "1.23e-06"),
        (1e100, "1e+100"),
    ],
)
def test_float_has_an_exponent_where_go_writes_one(value: float, text: str) -> None:
    assert as_text(value) == text

"""Which requests are retried."""

import pytest

from dlctl.errors import DlctlError
from dlctl.kube.errors import (
    ApiError,
    ConflictError,
    ConnectRefusedError,
    DisconnectedError,
    ThrottledError,
    UnreachableError,
)
from dlctl.kube.retries import MAX_DELAY_S, delay_s


def throttled(code: int, after_s: float = 2) -> ThrottledError:
    return ThrottledError("later", code=code, reason="", retry_after_s=after_s)


@pytest.mark.parametrize(
    ("method", "error", "expected"),
    [
        pytest.param("GET", throttled(429), 2, id="read, 429"),
        pytest.param("POST", throttled(429), 2, id="write, 429"),
        pytest.param("PATCH", throttled(503), 2, id="write, 503"),
        pytest.param("GET", throttled(504), 2, id="read, 504"),
        pytest.param("POST", throttled(429, 0), 0.1, id="no pause asked for"),
        pytest.param("POST", throttled(500), None, id="write that may have been applied"),
        pytest.param("GET", throttled(429, MAX_DELAY_S + 1), None, id="too long"),
        pytest.param("GET", DisconnectedError("x"), 0.1, id="read, reset"),
        pytest.param("DELETE", DisconnectedError("x"), None, id="write, reset"),
        pytest.param("GET", ConnectRefusedError("x"), None, id="refused"),
        pytest.param("GET", UnreachableError("x"), None, id="timed out"),
        pytest.param("GET", ApiError("x", code=500, reason=""), None, id="500"),
        pytest.param("PUT", ConflictError("x", code=409, reason=""), None, id="conflict"),
    ],
)
def test_only_safe_requests_are_retried(
    method: str, error: DlctlError, expected: float | None
) -> None:
    assert delay_s(method, error, 0, 0.0) == expected


def test_jitter_is_at_most_a_quarter() -> None:
    assert delay_s("GET", throttled(429, 8), 0, 1.0) == 10


def test_reconnecting_slows_down() -> None:
    pauses = [delay_s("GET", DisconnectedError("x"), attempt, 0.0) for attempt in range(10)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert max(pause or 0 for pause in pauses) == MAX_DELAY_S

"""Which error a response becomes."""

from typing import Any

import msgspec
import pytest

from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    TooLargeVersionError,
    UnauthorizedError,
    error_from,
)


def make_error(code: int, reason: str = "", *, headers: Any = None, **status: Any) -> ApiError:
    body = {"kind": "Status", "code": code, "reason": reason, **status}
    return error_from(code, headers or {}, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        pytest.param(404, "NotFound", NotFoundError, id="not found"),
        pytest.param(409, "AlreadyExists", AlreadyExistsError, id="name taken"),
        pytest.param(409, "Conflict", ConflictError, id="conflict"),
        pytest.param(410, "Expired", ExpiredError, id="expired"),
        pytest.param(410, "Gone", ExpiredError, id="gone"),
        pytest.param(422, "Invalid", InvalidError, id="invalid"),
        pytest.param(403, "Forbidden", ForbiddenError, id="forbidden"),
        pytest.param(401, "Unauthorized", UnauthorizedError, id="unauthorized"),
        pytest.param(429, "TooManyRequests", ThrottledError, id="throttled"),
        pytest.param(500, "InternalError", ApiError, id="internal"),
        pytest.param(400, "AlreadyExists", AlreadyExistsError, id="reason before code"),
        pytest.param(409, "Unheard", ConflictError, id="code if the reason is unknown"),
    ],
)
def test_reason_decides_before_the_code(code: int, reason: str, kind: type[ApiError]) -> None:
    error = make_error(code, reason, message="because")
    assert type(error) is kind
    assert (str(error), error.code, error.reason) == ("because", code, reason)


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad gateway</html>", b"null", b"[]", b'{"code":"x"}', b"\xff\xfe"]
)
def test_response_without_a_status_is_reported_by_its_code_without_its_body(body: bytes) -> None:
    error = error_from(502, {}, body)
    assert type(error) is ApiError
    assert str(error) == "the server responded 502 without a Status"


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        pytest.param({"Retry-After": "7"}, None, 7, id="header"),
        pytest.param({}, {"retryAfterSeconds": 5}, 5, id="details"),
        pytest.param({"Retry-After": "7"}, {"retryAfterSeconds": 5}, 7, id="header first"),
        pytest.param({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, None, 1, id="date"),
        pytest.param({"Retry-After": "-3"}, None, 1, id="negative"),
        pytest.param({}, {"retryAfterSeconds": -5}, 1, id="negative details"),
        pytest.param({"Retry-After": "nan"}, None, 1, id="no number"),
        pytest.param({}, None, 1, id="nothing"),
    ],
)
def test_retry_after_is_parsed(headers: Any, details: Any, expected: float) -> None:
    error = make_error(429, "TooManyRequests", headers=headers, details=details)
    assert isinstance(error, ThrottledError)
    assert error.retry_after_s == expected


@pytest.mark.parametrize(
    ("code", "body", "sheds"),
    [
        pytest.param(429, b"Too many requests, please try again later.\n", True, id="fairness"),
        pytest.param(429, b'{"kind":"Status","reason":"TooManyRequests"}', False, id="webhook"),
        pytest.param(503, b"apiserver is shutting down.\n", False, id="shutdown"),
    ],
)
def test_load_shedding_is_a_429_without_a_status(code: int, body: bytes, sheds: bool) -> None:
    error = error_from(code, {"Retry-After": "1"}, body)
    assert isinstance(error, ThrottledError)
    assert error.is_load_shedding is sheds


def test_server_error_is_throttling_only_with_a_retry_after() -> None:
    assert isinstance(make_error(503, headers={"Retry-After": "1"}), ThrottledError)
    assert type(make_error(503)) is ApiError


@pytest.mark.parametrize(
    "status",
    [
        {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}},
        {"details": {"causes": [{"message": "Too large resource version"}]}},
        {"message": "Too large resource version: 7, current: 5"},
    ],
)
def test_too_large_version_is_recognized_in_its_three_forms(status: Any) -> None:
    error = make_error(504, "Timeout", headers={"Retry-After": "1"}, **status)
    assert isinstance(error, TooLargeVersionError)


def test_other_timeout_is_not_a_too_large_version() -> None:
    assert not isinstance(make_error(504, "Timeout", message="slow"), TooLargeVersionError)


def test_error_event_has_its_code_in_its_body() -> None:
    error = error_from(0, {}, b'{"kind":"Status","code":410,"reason":"Expired","message":"old"}')
    assert isinstance(error, ExpiredError)
    assert error.code == 410

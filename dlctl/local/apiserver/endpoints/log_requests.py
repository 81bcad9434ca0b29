"""The requested lines of a container's log, from the query of ``kubectl logs``."""

import datetime
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Self

import attrs

from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.request_options import boolean, integer
from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.status import FieldError

_OPTIONS = Resource("", "v1", "", "PodLogOptions")


@attrs.frozen
class LogRequest:
    """A container, and which part of its log."""

    namespace: str
    pod: str
    container: str = ""
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_s: int | None = None
    since_time: datetime.datetime | None = None
    limit_bytes: int | None = None

    @classmethod
    def read(cls, request: ApiRequest) -> Self:
        """Return the request of a query; the container may still be missing."""
        query = request.query
        wanted = cls(
            namespace=request.info.namespace,
            pod=request.info.name,
            previous=bool(boolean(query, "previous")),
            follow=bool(boolean(query, "follow")),
            timestamps=bool(boolean(query, "timestamps")),
            tail_lines=integer(query, "tailLines"),
            since_s=integer(query, "sinceSeconds"),
            since_time=_time(query.get("sinceTime", "")),
            limit_bytes=integer(query, "limitBytes"),
        )
        if errors := list(_errors(wanted)):
            raise status.invalid(_OPTIONS, request.info.name, errors)
        return wanted


LogSource = Callable[[LogRequest], AsyncIterator[bytes]]


def _time(text: str) -> datetime.datetime | None:
    if not text:
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise status.bad_request(f'parsing time "{text}": not in RFC 3339') from None
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _errors(wanted: LogRequest) -> Iterator[FieldError]:
    if wanted.tail_lines is not None and wanted.tail_lines < 0:
        detail = "must be greater than or equal to 0"
        yield FieldError.invalid("tailLines", wanted.tail_lines, detail)
    if wanted.limit_bytes is not None and wanted.limit_bytes < 1:
        yield FieldError.invalid("limitBytes", wanted.limit_bytes, "must be greater than 0")
    if wanted.since_s is not None and wanted.since_time is not None:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        yield FieldError.forbidden("", detail)
    if wanted.since_s is not None and wanted.since_s < 1:
        yield FieldError.invalid("sinceSeconds", wanted.since_s, "must be greater than 0")

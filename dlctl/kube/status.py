"""The ``Status`` object: the response of an API server that is not an object, mostly an error."""

from typing import Final

import msgspec


class StatusCause(msgspec.Struct):
    """One of several causes of a Status."""

    reason: str | None = None
    message: str | None = None


class StatusDetails(msgspec.Struct, rename="camel"):
    """The details of a Status beyond its message."""

    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class Status(msgspec.Struct):
    """The fields of a Status that determine the reaction to it."""

    status: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None

    @property
    def causes(self) -> list[StatusCause]:
        return (self.details.causes if self.details else None) or []


_DECODER: Final = msgspec.json.Decoder(Status)


def decode_status(body: bytes) -> Status | None:
    """Return the Status in a body; None if it is incomplete, or something else."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

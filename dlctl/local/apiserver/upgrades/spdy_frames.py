"""Frames of SPDY/3.1, as far as kubectl and client-go use them: streams in one byte stream.

Nothing here reads or writes; windows are not enforced, as in client-go.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.errors import DlctlError

_CONTROL: Final = 0x8003
_SYN_REPLY: Final = 2
_FIN: Final = 1
_HEADER_BYTES: Final = 8
_STREAM_MASK: Final = 0x7FFFFFFF

# The compression dictionary of the SPDY/3 specification: names with their length, then values.
_NAMES: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base "
    "content-encoding content-language content-length content-location content-md5 "
    "content-range content-type date etag expect expires from host if-match if-modified-since "
    "if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer "
    "retry-after server te trailer "  # codespell:ignore te
    "transfer-encoding upgrade user-agent vary via warning www-authenticate method get status"
)
_LATER_NAMES: Final = "version HTTP/1.1 url public set-cookie keep-alive origin"
_VALUES: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


class SpdyError(DlctlError):
    """The bytes are not SPDY/3.1."""


def _texts(texts: Iterable[str]) -> bytes:
    return b"".join(len(text).to_bytes(4, "big") + text.encode() for text in texts)


DICTIONARY: Final = _texts([*_NAMES.split(), "200 OK", *_LATER_NAMES.split()]) + _VALUES.encode()


@attrs.frozen
class StreamOpened:
    """The client opens a stream; header names are in lower case."""

    stream: int
    headers: Mapping[str, str]


@attrs.frozen
class StreamData:
    """Bytes of a stream; ``last`` closes the sender's side of it."""

    stream: int
    data: bytes
    last: bool


@attrs.frozen
class StreamReset:
    """The client abandons a stream."""

    stream: int


@attrs.frozen
class Ping:
    """A frame to send back as it is."""

    frame: bytes


SpdyEvent = StreamOpened | StreamData | StreamReset | Ping


class SpdyDecoder:
    """The events in the bytes of a client."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[SpdyEvent]:
        """Yield the events that these bytes complete; raise SpdyError for other bytes."""
        self._pending += data
        while len(self._pending) >= _HEADER_BYTES:
            size = _HEADER_BYTES + int.from_bytes(self._pending[5:8], "big")
            if len(self._pending) < size:
                return
            frame = bytes(self._pending[:size])
            del self._pending[:size]
            yield from self._events(frame)

    def _events(self, frame: bytes) -> Iterator[SpdyEvent]:
        kind, flags, payload = int.from_bytes(frame[:4], "big"), frame[4], frame[8:]
        if not kind >> 31:
            yield StreamData(kind, payload, bool(flags & _FIN))
            return
        if kind >> 16 != _CONTROL:
            raise SpdyError("the client does not use SPDY/3.1")
        stream = int.from_bytes(payload[:4], "big") & _STREAM_MASK
        match kind & 0xFFFF:
            case 1:  # SYN_STREAM
                yield StreamOpened(stream, self._decompress(payload[10:]))
                if flags & _FIN:
                    yield StreamData(stream, b"", last=True)
            case 3:  # RST_STREAM
                yield StreamReset(stream)
            case 6:  # PING
                yield Ping(frame)
            case _:
                # Settings and windows change nothing here.
                pass

    def _decompress(self, block: bytes) -> Mapping[str, str]:
        try:
            words = list(_split(self._headers.decompress(block)))
        except (zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"unreadable headers: {error}") from None
        return dict(zip((word.lower() for word in words[::2]), words[1::2], strict=True))


def _split(block: bytes) -> Iterator[str]:
    count, at = 2 * int.from_bytes(block[:4], "big"), 4
    for _ in range(count):
        size = int.from_bytes(block[at : at + 4], "big")
        yield block[at + 4 : at + 4 + size].decode()
        at += 4 + size


class SpdyEncoder:
    """The frames of a server."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def accept(self, stream: int) -> bytes:
        """Return the reply to an opened stream, without headers."""
        none = (0).to_bytes(4, "big")
        block = self._headers.compress(none) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, stream.to_bytes(4, "big") + block)


def data_frame(stream: int, data: bytes, *, last: bool = False) -> bytes:
    return stream.to_bytes(4, "big") + bytes([_FIN * last]) + len(data).to_bytes(3, "big") + data


def _control(kind: int, payload: bytes) -> bytes:
    head = (_CONTROL << 16 | kind).to_bytes(4, "big")
    return head + b"\0" + len(payload).to_bytes(3, "big") + payload

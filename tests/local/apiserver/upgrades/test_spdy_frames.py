"""SPDY frames, in pieces of any size."""

import zlib

import pytest

from dlctl.local.apiserver.upgrades.spdy_frames import (
    DICTIONARY,
    Ping,
    SpdyDecoder,
    SpdyEncoder,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
    data_frame,
)


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return (
        b"\x80\x03"
        + kind.to_bytes(2, "big")
        + bytes([flags])
        + len(payload).to_bytes(3, "big")
        + payload
    )


def syn_stream(stream: int, headers: bytes, flags: int = 0) -> bytes:
    return control(1, stream.to_bytes(4, "big") + bytes(6) + headers, flags)


def block(**headers: str) -> bytes:
    words = [word.encode() for pair in headers.items() for word in pair]
    sized = b"".join(len(word).to_bytes(4, "big") + word for word in words)
    return len(headers).to_bytes(4, "big") + sized


def compressed(*blocks: bytes) -> list[bytes]:
    """Return header blocks as one client compresses them: later ones refer to earlier ones."""
    compressor = zlib.compressobj(zdict=DICTIONARY)
    return [compressor.compress(each) + compressor.flush(zlib.Z_SYNC_FLUSH) for each in blocks]


NOT_TEXT = block(streamtype="?").replace(b"?", b"\xff")


def test_dictionary_is_that_of_the_specification() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_frames_are_decoded_however_they_arrive(size: int) -> None:
    first, second = compressed(
        block(Streamtype="error", Port="80"), block(Streamtype="data", Port="80")
    )
    ping, settings = control(6, bytes(4)), control(4, bytes(4))
    sent = (
        syn_stream(1, first, flags=1)
        + settings
        + syn_stream(3, second)
        + data_frame(3, b"x" * 100)
        + ping
        + control(3, (3).to_bytes(4, "big") + bytes(4))
    )
    decoder = SpdyDecoder()
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert [event for piece in pieces for event in decoder.feed(piece)] == [
        StreamOpened(1, {"streamtype": "error", "port": "80"}),
        StreamData(1, b"", last=True),
        StreamOpened(3, {"streamtype": "data", "port": "80"}),
        StreamData(3, b"x" * 100, last=False),
        Ping(ping),
        StreamReset(3),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x80\x02" + bytes(6), id="another version"),
        pytest.param(syn_stream(1, b"not compressed"), id="headers"),
        pytest.param(syn_stream(1, compressed(NOT_TEXT)[0]), id="a header that is not text"),
    ],
)
def test_other_bytes_are_an_error(sent: bytes) -> None:
    with pytest.raises(SpdyError):
        list(SpdyDecoder().feed(sent))


def test_reply_has_an_empty_header_block() -> None:
    reply = SpdyEncoder().accept(5)
    assert reply[:4] == b"\x80\x03\x00\x02"
    assert reply[8:12] == (5).to_bytes(4, "big")
    assert zlib.decompressobj(zdict=DICTIONARY).decompress(reply[12:]) == bytes(4)

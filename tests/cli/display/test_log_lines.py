"""Lines of programs as they are shown: whatever bytes they write, in whatever portions."""

import io
from typing import Literal

import pytest
from rich.console import Console

from dlctl.cli.display.log_lines import LINE_BYTES, LineSplitter, LogPrefixes, displayable


def lines(*chunks: bytes) -> list[str]:
    splitter = LineSplitter()
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return found + splitter.finish()


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([b"one\ntwo\n"], ["one", "two"], id="whole lines"),
        pytest.param([b"on", b"e\ntw", b"o"], ["one", "two"], id="portions"),
        pytest.param([b"one\r\ntwo\r\n"], ["one", "two"], id="line ends of Windows"),
        pytest.param([b" 9%\r50%\r", b"99%\r\n"], ["99%"], id="progress bar"),
        pytest.param([b"\r 9%", b"\r99%", b"\ndone"], ["99%", "done"], id="carriage return first"),
        pytest.param([b"\xe2\x82", b"\xac\n"], ["\N{EURO SIGN}"], id="character in two portions"),
        pytest.param([b"a\n\nb\n"], ["a", "", "b"], id="empty line"),
        pytest.param([b""], [], id="nothing"),
        pytest.param([b"\r"], [], id="cleared line at the end"),
    ],
)
def test_lines_are_whole_and_of_a_progress_bar_the_newest_state(
    chunks: list[bytes], expected: list[str]
) -> None:
    assert lines(*chunks) == expected


def test_unfinished_line_is_the_newest_state_of_a_progress_bar() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"start\n\r10%\r20%") == ["start"]
    assert splitter.unfinished == "20%"
    assert splitter.feed(b"\r30%\r") == []
    assert splitter.unfinished == "30%"


def test_endless_line_and_endless_progress_bar_take_bounded_memory() -> None:
    splitter = LineSplitter()
    dots = "".join(line for _ in range(100) for line in splitter.feed(b"." * 9000))
    assert LINE_BYTES * 50 < len(dots) <= 900_000
    for _ in range(100):
        assert splitter.feed(b"\r" + b"#" * 9000) == []
    assert len(splitter.unfinished) == 9000


def test_long_line_is_shown_whole_in_pieces_that_cut_no_character() -> None:
    text = "\N{EURO SIGN}" * LINE_BYTES
    assert "".join(lines(text.encode() + b"\n")) == text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        pytest.param(b"\x1b[31mred\x1b[0m", "red", id="colour"),
        pytest.param(b"\x1b[2J\x1b[10Aup", "up", id="cursor"),
        pytest.param(b"\x1b]0;title\x07text", "text", id="title"),
        pytest.param(b"\x1b]8;;http://x\x1b\\link", "link", id="link"),
        pytest.param(b"\x1bP+q544e\x1b\\\x1bc\x1b(0x", "x", id="reset and character set"),
        pytest.param(b"\x1b]0;never ended", "", id="sequence without an end"),
        pytest.param(b"a\x07\x08\x00b", "a   b", id="control characters"),
        pytest.param("\x9b31mx\u202ey".encode(), "x y", id="C1 and direction override"),
        pytest.param(b"\xff\xfe", "\N{REPLACEMENT CHARACTER}" * 2, id="invalid bytes"),
        pytest.param("größe 漢字 🎉".encode(), "größe 漢字 🎉", id="text of any script"),
        pytest.param(b"a\tb", "a       b", id="tab"),
    ],
)
def test_no_control_sequence_reaches_the_terminal(written: bytes, shown: str) -> None:
    assert displayable(written) == shown


def test_prefixes_are_padded_to_the_widest_name() -> None:
    prefixes = LogPrefixes.of(["master-0", "worker-10"])
    assert prefixes.lines("master-0", ["a", "b"]) == "master-0  | a\nmaster-0  | b\n"
    assert prefixes.lines("unknown", ["a"]) == "unknown | a\n"


@pytest.mark.parametrize("colour", [True, False])
def test_prefixes_have_colours_where_the_console_has(colour: bool) -> None:
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=io.StringIO(), color_system=system)
    line = LogPrefixes.of(["worker-0"], console).lines("worker-0", ["a"])
    assert line == ("\x1b[36mworker-0 | \x1b[0ma\n" if colour else "worker-0 | a\n")

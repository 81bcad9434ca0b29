"""Lines of logs without the tags of launchers, and texts that can be shown."""

import pytest

from dlctl.reconcilers.program_output.log_text import LogLine, log_lines, printable


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("step 3", LogLine("step 3"), id="no tag"),
        pytest.param("[rank3]: ValueError: x", LogLine("ValueError: x", 3), id="torch"),
        pytest.param("[default1]:step 3", LogLine("step 3"), id="torchrun's local rank"),
        pytest.param("[default1]:[rank9]: x", LogLine("x", 9), id="torchrun and torch"),
        pytest.param("[1,2]<stderr>: step", LogLine("step", 2), id="Open MPI"),
        pytest.param("[1,2]<stderr>:Val[1,2]<stderr>:id", LogLine("Valid", 2), id="in parts"),
        pytest.param("[2]<stdout>:step", LogLine("step", 2), id="horovodrun"),
        pytest.param("[0]: not a tag", LogLine("[0]: not a tag"), id="a number in brackets"),
        pytest.param("\x1b[31mred\x1b[0m\x07", LogLine("red"), id="colours and bells"),
    ],
)
def test_line_is_read_without_its_tag(text: str, line: LogLine) -> None:
    assert log_lines(text) == [line]


def test_states_of_a_progress_bar_are_lines() -> None:
    lines = log_lines(" 10%|#\r 20%|##\rValueError: x\r\nend")
    assert [line.text for line in lines] == [" 10%|#", " 20%|##", "ValueError: x", "end"]


def test_only_the_end_of_a_log_is_read() -> None:
    lines = log_lines("x\n" * 100_000 + "the end")
    assert (len(lines), lines[-1].text) == (2_000, "the end")


def test_text_that_is_too_long_to_show_ends_in_dots() -> None:
    assert printable("a" * 30, 10) == "aaaaaaa..."
    assert printable("  a\x00b\u202e\ud800c  ", 10) == "abc"

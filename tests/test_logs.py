import asyncio
import io
import json
import logging
from typing import Any

import pytest

from dlctl.logs import LogFormat, configure, current_fields, log_fields

logger = logging.getLogger("dlctl.test")


@pytest.fixture
def stream() -> io.StringIO:
    """Where records go."""
    return io.StringIO()


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_record_is_one_json_object_on_one_line(stream: io.StringIO) -> None:
    configure(stream)
    logger.info("pod created\nor so", extra={"key": "ml/linear", "retry_s": 0.5})

    [entry] = entries(stream)
    assert entry.pop("time").endswith("Z")
    assert list(entry.items()) == [
        ("level", "info"),
        ("logger", "dlctl.test"),
        ("message", "pod created\nor so"),
        ("key", "ml/linear"),
        ("retry_s", 0.5),
    ]


def test_value_without_a_json_form_is_written_as_a_string(stream: io.StringIO) -> None:
    configure(stream)
    logger.info("seen", extra={"error": ValueError("no"), "names": {"a"}})

    assert entries(stream)[0]["error"] == "no"


def test_value_cannot_replace_the_level_or_the_time(stream: io.StringIO) -> None:
    configure(stream)
    logger.info("seen", extra={"level": "error", "time": "never", "logger": "another"})

    [entry] = entries(stream)
    assert (entry["level"], entry["logger"]) == ("info", "dlctl.test")
    assert entry["time"] != "never"


@pytest.mark.parametrize("format_", LogFormat)
def test_exception_comes_with_its_traceback(stream: io.StringIO, format_: LogFormat) -> None:
    configure(stream, format_=format_)
    try:
        int("lost")
    except ValueError:
        logger.exception("reconcile failed")

    assert "Traceback (most recent call last)" in stream.getvalue()
    assert "lost" in stream.getvalue()


def test_console_shows_time_level_message_and_values(stream: io.StringIO) -> None:
    configure(stream, format_=LogFormat.CONSOLE)
    logger.warning("pod lost", extra={"key": "ml/linear", "why": "node is gone"})

    assert stream.getvalue()[8:] == ' WARNING pod lost  key=ml/linear why="node is gone"\n'


def test_console_value_cannot_start_a_new_line(stream: io.StringIO) -> None:
    configure(stream, format_=LogFormat.CONSOLE)
    logger.info("seen", extra={"error": "first\n12:00:00 ERROR forged\x1b[2J"})

    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("format_", LogFormat)
@pytest.mark.parametrize("character", ["\x7f", "\x85", "\x9b", "\u2028", "\u202e"])
def test_character_that_controls_a_terminal_is_escaped(
    stream: io.StringIO, character: str, format_: LogFormat
) -> None:
    configure(stream, format_=format_)
    logger.info("seen", extra={"error": f"ä{character}2J"})

    assert stream.getvalue().removesuffix("\n").isprintable()

    logger.error("reconcile failed", exc_info=ValueError(character))
    assert all(line.isprintable() for line in stream.getvalue().split("\n"))


@pytest.mark.parametrize(
    ("level", "messages"),
    [
        pytest.param("debug", ["detail", "news", "trouble"], id="debug"),
        pytest.param("info", ["news", "trouble"], id="info"),
        pytest.param("warning", ["trouble"], id="warning"),
    ],
)
def test_records_below_the_level_are_dropped(
    stream: io.StringIO, level: str, messages: list[str]
) -> None:
    configure(stream, level=level)
    logger.debug("detail")
    logger.info("news")
    logger.warning("trouble")

    assert [entry["message"] for entry in entries(stream)] == messages


def test_setting_up_again_replaces_the_first(stream: io.StringIO) -> None:
    first = io.StringIO()
    configure(first)
    configure(stream)
    logger.info("once")

    assert first.getvalue() == ""
    assert len(entries(stream)) == 1


def test_fields_are_on_every_record_of_the_block_only(stream: io.StringIO) -> None:
    configure(stream)
    with log_fields(controller="mxjobs", object="ml/a"):
        with log_fields(object="ml/b"):
            logger.info("inner")
        logger.info("outer", extra={"object": "ml/c"})
    logger.info("after")

    inner, outer, after = entries(stream)
    assert (inner["controller"], inner["object"]) == ("mxjobs", "ml/b")
    # The call's own fields win over those of the context around it.
    assert (outer["controller"], outer["object"]) == ("mxjobs", "ml/c")
    assert "controller" not in after


async def test_fields_of_one_task_do_not_reach_another() -> None:
    seen: dict[str, object] = {}

    async def work(name: str) -> None:
        with log_fields(object=name):
            await asyncio.sleep(0)
            async with asyncio.TaskGroup() as group:
                group.create_task(note(name))

    async def note(name: str) -> None:
        seen[name] = current_fields()["object"]

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(work(name))

    assert seen == {"a": "a", "b": "b", "c": "c"}
    assert current_fields() == {}

"""Lists of names and messages as text."""

import pytest

from dlctl.name_lists import first_messages, first_names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param("", "", id="none"),
        pytest.param("abc", "a, b, c", id="as many as are shown"),
        pytest.param("abcde", "a, b, c and 2 more", id="more"),
    ],
)
def test_first_names_are_shown_and_the_others_counted(names: str, text: str) -> None:
    assert first_names(list(names)) == text


def test_unlisted_names_are_counted_too() -> None:
    assert first_names(["a", "b"], 5, count=7) == "a, b and 5 more"


def test_first_messages_are_shown_and_the_others_counted() -> None:
    assert first_messages(["a", "b"]) == "a; b"
    assert first_messages(["a", "b", "c", "d"]) == "a; b; c; and 1 more"

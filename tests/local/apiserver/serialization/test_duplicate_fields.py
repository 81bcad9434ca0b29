"""Fields that occur more than once in a JSON body are found, whatever its strings contain."""

import pytest

from dlctl.local.apiserver.serialization.decoding_errors import duplicate_fields


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("plain", id="plain"),
        pytest.param('\\":', id="like the end of a name"),
        pytest.param("\\u0022:", id="escaped quote"),
        pytest.param('\\"\\u003a', id="escaped colon"),
        pytest.param('\\"\\u003A', id="escaped colon in capitals"),
    ],
)
def test_duplicates_are_found_beside_any_text(text: str) -> None:
    once, twice = f'"text": "{text}"', '"a": 1, "a": 2'
    assert duplicate_fields(f'{{"a": {{"b": 1}}, {once}}}'.encode()) == []
    assert duplicate_fields(f"{{{twice}, {once}}}".encode()) == ["a"]
    assert duplicate_fields(f'{{"b": {{{twice}}}, {once}}}'.encode()) == ["b.a"]

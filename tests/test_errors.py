"""A value in a message: its beginning, whatever its size."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlctl.errors import quoted, truncated

VALUES = st.recursive(
    st.text(max_size=50) | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@given(VALUES)
def test_value_is_quoted_as_python_writes_it(value: Any) -> None:
    # Which quotes a string is in may follow from characters that are not shown.
    assert _with_one_kind_of_quotes(quoted(value)) == _with_one_kind_of_quotes(
        truncated(repr(value), 40)
    )


def _with_one_kind_of_quotes(text: str) -> str:
    return text.replace('"', "'").replace("\\", "")

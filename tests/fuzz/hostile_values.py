"""Unexpected values as JSON text; most cannot be encoded from Python values.

The tame ones come first, since a failing example shrinks towards them.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

# A real API server decodes objects up to 10,000 levels deep, and stores up to 1.5 MB.
DEPTHS: Final = (3, 100, 999, 1500, 5000, 9900)
LENGTHS: Final = (64, 254, 4096, 60_000)
_TEXTS: Final = (
    "",
    " ",
    "x",
    "-",
    "0",
    "true",
    "null",
    "NaN",
    "1e999999",
    "1e99999999",
    "-1Gi",
    "1.5.5",
    "16GB",
    "0x10",
    "٣",  # A digit only for Python.
    "²",
    "\uff11\uff10",
    "\0",
    "a\0b",
    "\n",
    "é\u0301",
    "\u202eabc",
    "😀",
    "../../etc/passwd",
    "/proc/self/environ",
    "$(HOME)",
    "${jndi:x}",
    "%s{}{0.__class__}",
    "a,b=c;d:e",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2026-01-01T00:00:00+99:99",
    "2026-01-01T00:00:00.000000000000000000001Z",
)
_NUMBERS: Final = (
    "-1",
    "0.5",
    "1.0",
    "-0",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "1e2",
    "1e308",
    "1e309",
    "1e999999",
    "-1e-999999",
    "9" * 400,
    "9" * 5000,
    "0." + "1" * 400,
)
_OTHERS: Final = (
    "null",
    "false",
    "true",
    "0",
    "1",
    "{}",
    "[]",
    "[null]",
    "[[]]",
    '[""]',
    '{"":null}',
    '{"":""}',
    '{"a":1,"a":2}',
    '{"name":["x"]}',
    '[{"name":["x"]}]',
    '[{"name":{}}]',
    '[{"mountPath":[]}]',
)
# No server stores these unchanged: Go inserts the replacement character.
_SURROGATES: Final = (r'"\ud800"', r'"a\udfffb"', r'{"\ud800":"\udfff"}')

# Of fields, of replica types, of labels.
NAMES: Final = ("Boss", "WORKER", "", " ", "x" * 300, "a/b/c", "é", "\0", "name", "constructor")


def _long() -> Iterator[str]:
    for length in LENGTHS:
        yield '"' + "a" * length + '"'
        yield '"' + "9" * length + '"'
        yield '"' + "1" * length + 'Gi"'
        yield '"' + "\\u0000" * (length // 6) + '"'
    for count in (100, 5000):
        yield "[" + ",".join(["0"] * count) + "]"
        yield "[" + ",".join(['"a"'] * count) + "]"
        yield "[" + ",".join(["{}"] * count) + "]"
        yield "[" + ",".join(['{"name":"a","value":"b"}'] * count) + "]"
        yield "{" + ",".join(f'"k{n}":"v"' for n in range(count)) + "}"
        yield "{" + ",".join(f'"k{n}":1' for n in range(count)) + "}"


def _deep() -> Iterator[str]:
    for depth in DEPTHS:
        yield "[" * depth + "]" * depth
        yield '{"a":' * depth + "1" + "}" * depth
        yield '[{"name":' * (depth // 2) + "[]" + "}]" * (depth // 2)


def _texts() -> Iterator[str]:
    yield from (msgspec.json.encode(text).decode() for text in _TEXTS)


def raw(text: str) -> Any:
    """Return a value that is encoded to exactly this JSON text."""
    return msgspec.Raw(text.encode())


SIMPLE: Final = [raw(text) for text in (*_OTHERS, *_texts(), *_NUMBERS)]
LARGE: Final = [raw(text) for text in (*_long(), *_deep())]
# Each large one costs as much as twenty others, and is less varied.
storable: Final = st.one_of(
    st.sampled_from(SIMPLE), st.sampled_from(SIMPLE), st.sampled_from(LARGE)
)
sendable: Final = st.one_of(storable, storable, storable, st.sampled_from([*map(raw, _SURROGATES)]))
texts: Final = st.sampled_from(
    [*map(raw, _texts()), *(r for r in LARGE if bytes(r).startswith(b'"'))]
)

"""Nesting depth of objects: as deep as the real server allows, far beyond Python's default."""

import sys
from typing import Any, Final

import msgspec

from dlctl.api.nesting import exceeds_depth

# As in Go's JSON decoder.
MAX_DEPTH: Final = 10_000
# Calls per level of such an object, in code that validates, defaults and compares it.
_CALLS: Final = 20


def check(body: bytes) -> None:
    """Raise RecursionError if a body nests deeper than the real server allows."""
    if exceeds_depth(body, MAX_DEPTH):
        raise RecursionError


def decode_json(text: str) -> Any:
    """Decode JSON in a string of a body, where ``check`` has not looked.

    :raises msgspec.DecodeError: if it is malformed or nests too deeply. Under ``DeepCalls``, the
        decoder itself would exceed the stack.
    """
    data = text.encode()
    if exceeds_depth(data, MAX_DEPTH):
        raise msgspec.DecodeError("exceeded max depth")
    return msgspec.json.decode(data)


class DeepCalls:
    """Lets the code of a ``with`` block, which must not await, recurse into the deepest object.

    The limit for the rest of the process stays as it is.
    """

    def __enter__(self) -> None:
        self._before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(self._before, MAX_DEPTH * _CALLS))

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._before)

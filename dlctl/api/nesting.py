"""How deep JSON text nests: the bound for what tenants write, and reading past what breaks it.

A few KB of brackets nest deeper than decoders and the functions behind them can follow. The text
is expected to be JSON; of other text the results mean nothing.
"""

import re
from typing import Final

# A pod template in a job nests about 20 levels deep.
MAX_LEVELS: Final = 64
# More brackets than this are not looked at one by one: it would hold up the event loop.
MAX_BRACKETS: Final = 20_000

# It never backtracks: its repetitions are possessive.
_BRACKET: Final = re.compile(rb'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_ROUND: Final = bytes.maketrans(b"[{]}", b"(())")


def nests_deeper(text: bytes, levels: int = MAX_LEVELS) -> bool:
    """Return whether some value is inside of more than ``levels`` objects and lists."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    # Without escapes, what is between quotes is every second piece.
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(_ROUND, _OTHERS)
    for left in range(levels, 0, -1):
        if not brackets:
            return False
        if b"(" * (left + 1) in brackets:
            return True
        # Removes the innermost level of each branch.
        brackets = brackets.replace(b"()", b"")
    return bool(brackets)


def flattened(
    text: bytes, levels: int = 2 * MAX_LEVELS, *, max_brackets: int = MAX_BRACKETS
) -> tuple[bytes, bool]:
    """Return the text with ``null`` for each value that nests deeper, and whether it is complete.

    It is incomplete if there are too many brackets: what comes after them is left out.
    """
    parts: list[bytes] = []
    closers = bytearray()
    kept_from = skipped = at = count = 0
    while (found := _BRACKET.match(text, at)) is not None:
        at, opens = found.end(), found[1] in b"[{"
        count += 1
        if opens and (skipped or len(closers) == levels or count > max_brackets):
            if not skipped:
                parts.append(text[kept_from : at - 1] + b"null")
            if count > max_brackets:
                return b"".join(parts) + bytes(reversed(closers)), False
            skipped += 1
        elif opens:
            closers += b"]" if found[1] == b"[" else b"}"
        elif skipped:
            skipped -= 1
            kept_from = at
        else:
            closers.pop()
    return b"".join(parts) + text[kept_from:], True

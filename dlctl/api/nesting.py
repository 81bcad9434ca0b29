"""Limits the nesting depth of JSON text written by tenants, and truncates what exceeds it.

A few KB of brackets nest deeper than decoders and later recursive functions can handle. The text
must be valid JSON; otherwise the results are undefined.
"""

import re
from typing import Final

import attrs

# A pod template in a job nests about 20 levels deep.
MAX_DEPTH: Final = 64
# More brackets are not examined one by one: that would block the event loop.
MAX_BRACKETS: Final = 20_000
# Lists and objects: to find the depth of more takes too long as well. A job has a few thousand.
MAX_VALUES: Final = 100_000

# Possessive repetitions: it never backtracks.
_BRACKET: Final = re.compile(rb'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_NEITHER_BRACKET_NOR_QUOTE: Final = bytes(set(range(256)) - set(b'[]{}"'))
_TO_PARENTHESES: Final = bytes.maketrans(b"[{]}", b"(())")


def exceeds_depth(
    text: bytes, max_depth: int = MAX_DEPTH, *, max_values: int | None = None
) -> bool:
    """Return whether some value is inside more than ``max_depth`` objects and lists.

    With ``max_values``, also whether there are more of these than that.
    """
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return False
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = unescaped.translate(_TO_PARENTHESES, _NEITHER_BRACKET_NOR_QUOTE)
    # Few strings hold brackets, and without the other ones the text has few pieces, each of which
    # takes more memory than its bytes. Every second piece is the content of a string.
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    if max_values is not None and brackets.count(b"(") > max_values:
        return True
    for left in range(max_depth, 0, -1):
        if not brackets:
            return False
        if b"(" * (left + 1) in brackets:
            return True
        # Remove the innermost level of each branch.
        brackets = brackets.replace(b"()", b"")
    return bool(brackets)


@attrs.frozen
class TruncatedText:
    """A text with ``null`` for each value that nests too deeply, and these values."""

    text: bytes
    removed: list[bytes]
    # False if there are too many brackets: the text after them is cut off.
    is_complete: bool = True


def truncate_to_depth(
    text: bytes, max_depth: int = 2 * MAX_DEPTH, *, max_brackets: int = MAX_BRACKETS
) -> TruncatedText:
    """Return the text without the values that nest deeper."""
    parts: list[bytes] = []
    removed: list[bytes] = []
    closers = bytearray()
    copied_to = skipped_from = skipped_depth = position = count = 0
    while (found := _BRACKET.match(text, position)) is not None:
        position, opens = found.end(), found[1] in b"[{"
        count += 1
        if opens and (skipped_depth or len(closers) == max_depth or count > max_brackets):
            if not skipped_depth:
                skipped_from = position - 1
                parts.append(text[copied_to:skipped_from] + b"null")
            if count > max_brackets:
                kept = b"".join(parts) + bytes(reversed(closers))
                return TruncatedText(kept, removed, is_complete=False)
            skipped_depth += 1
        elif opens:
            closers += b"]" if found[1] == b"[" else b"}"
        elif skipped_depth:
            skipped_depth -= 1
            copied_to = position
            if not skipped_depth:
                removed.append(text[skipped_from:position])
        else:
            closers.pop()
    return TruncatedText(b"".join(parts) + text[copied_to:], removed)

"""Regular expressions of schemas, in RE2 syntax, run by Python's ``re``.

Only the differences that occur in schemas are bridged. Not a sandbox: authors of CRDs are trusted.
"""

import re
from functools import lru_cache
from typing import Final

_CLASSES: Final = {
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:alnum:]": "0-9A-Za-z",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:space:]": r"\s",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9A-Fa-f",
}


@lru_cache(maxsize=1024)
def compile_re2(pattern: str) -> re.Pattern[str]:
    """Return the compiled expression for searching; raise ``re.error`` if it is malformed."""
    for name, chars in _CLASSES.items():
        pattern = pattern.replace(name, chars)
    return re.compile(_end_anchored(pattern), re.ASCII)


def _end_anchored(pattern: str) -> str:
    # RE2's $ is only the end of the text; Python's also matches before a final newline.
    out, in_class, escaped = [], False, False
    for char in pattern:
        if escaped:
            out.append("Z" if char == "z" else char)
            escaped = False
            continue
        escaped = char == "\\"
        if char == "[":
            in_class = True
        elif char == "]":
            in_class = False
        out.append(r"\Z" if char == "$" and not in_class else char)
    return "".join(out)

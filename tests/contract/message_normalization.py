"""Messages of older servers that differ from those of 1.36, which the embedded server models.

Each row has two wordings of the same rejection; differences in behaviour are marked in the tests by
``since``. Values that differ each time do not belong here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import attrs


@attrs.frozen
class MessageChange:
    """A pattern of a message before a minor version, and its replacement since then."""

    since: int
    older: str
    newer: str | Callable[[re.Match[str]], str]


def _in_json(found: re.Match[str]) -> str:
    return f"value: [{found[1].replace(', ', ',')}]"


MESSAGE_CHANGES: Final[Sequence[MessageChange]] = (
    # Values are in JSON since 1.34. Before, they were as Go writes them: nothing at all,
    MessageChange(34, r'(Invalid|Unsupported) value: "null"', r"\1 value: null"),
    MessageChange(34, r"value: \[\]string\(nil\)", "value: null"),
    # lists, empty or of texts,
    MessageChange(34, r"value: \[\]\w+\.\w+\{\}", "value: []"),
    MessageChange(34, r"value: \[\]string\{(.*?)\}", _in_json),
    # whole quantities,
    MessageChange(
        34,
        r"value: resource\.Quantity\{i:\S+\{value:(-?\d+), scale:0\}.+?\}(?=: |$)",
        r'value: "\1"',
    ),
    # objects, whose fields have other names inside the server: no test looks into them,
    MessageChange(
        34,
        r"value: (\[\])?(map\[string\](?:interface \{\}|string)|\w+\.\w+)\{.+?\}(?=: |$)",
        "value: OBJECT",
    ),
    # points in time, in a form of their own,
    MessageChange(34, r"value: (\S{10}) (\S{8}) \+0000 UTC", r'value: "\1T\2Z"'),
    # numbers without a sign, which are versions here, in hexadecimal,
    MessageChange(34, r"value: 0x0\b", "value: 0"),
    # and texts that are of a type of their own, without quotes.
    MessageChange(
        34,
        r"value: (\w+): must be a standard resource",
        r'value: "\1": must be a standard resource',
    ),
    # The path has said which field it is that is missing.
    MessageChange(34, r"Required value: schemas are required", "Required value"),
    MessageChange(34, r": (kind|name|uid) must not be empty", ": must not be empty"),
    # An object or a list that breaks a rule is not shown; before, its type stood in its place. What
    # is of a wrong type is shown by its type in all versions.
    MessageChange(35, r'value: "(object|array)": (?!\S+ in body must be of type)', "value: "),
    # Labels have their own validation since 1.35; that of other names keeps the old message.
    MessageChange(
        35, r'(labels: Invalid value: "[^"]*": .*?no more than \d+) characters', r"\1 bytes"
    ),
    MessageChange(
        35, r'(labels: Invalid value: "[^"]*": )a qualified name must', r"\1a valid label key must"
    ),
    # Since an item may lack some of several keys, all of them are named.
    MessageChange(
        36,
        r'omits key field ("\w+") \(and doesn\'t have default value\)',
        r"omits all key fields [\1] (and doesn't have default values for any key fields)",
    ),
    # A Service name may begin with a digit since 1.36, and its dots have their own rule.
    MessageChange(
        36,
        r'(metadata\.name: Invalid value: "[^"]*\.[^"]*": )a DNS-1035 label must .*\(e\.g\..*$',
        r"\1must not contain dots",
    ),
    # The statuses of Jobs are rejected in the words of other kinds.
    MessageChange(
        36,
        r"uncountedTerminatedPods needs to be empty for finished job",
        "must be empty for finished job",
    ),
    MessageChange(
        36,
        r"completionTime cannot be set before startTime",
        "must be equal to or after `startTime`",
    ),
    MessageChange(36, r"completionTime cannot be mutated", "field is immutable"),
)


def normalize_message(text: str, minor: int) -> str:
    """Return a message of a server of this minor version in its form of 1.36."""
    for row in MESSAGE_CHANGES:
        if minor < row.since:
            text = re.sub(row.older, row.newer, text)
    return text

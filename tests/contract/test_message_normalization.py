"""Normalization of messages; only a real server of an older version uses it."""

import re

import pytest

from tests.contract.message_normalization import MESSAGE_CHANGES, normalize_message

_OLDEST, _NEWEST = 33, 36
_MUST = "alphanumeric characters (e.g. 'x', regex used for validation is '[a-z]')"

EXAMPLES = [
    ('f: Invalid value: "null": must be', "f: Invalid value: null: must be"),
    ("f: Invalid value: []string(nil): must", "f: Invalid value: null: must"),
    ("f: Invalid value: []core.Version{}: must", "f: Invalid value: []: must"),
    ('f: Invalid value: []string{"a", "b"}: must', 'f: Invalid value: ["a","b"]: must'),
    (
        'f: Invalid value: resource.Quantity{i:resource.int64Amount{value:-2, scale:0}, s:""}: no',
        'f: Invalid value: "-2": no',
    ),
    ('f: Invalid value: core.A{B:core.C{D:""}, E:1}: no', "f: Invalid value: OBJECT: no"),
    ('f: Duplicate value: map[string]interface {}{"a":"b"}', "f: Duplicate value: OBJECT"),
    (
        "f: Invalid value: 2020-01-02 03:04:05 +0000 UTC: is",
        'f: Invalid value: "2020-01-02T03:04:05Z": is',
    ),
    ("f: Invalid value: 0x0: must be", "f: Invalid value: 0: must be"),
    (
        "f: Invalid value: gpu: must be a standard resource type",
        'f: Invalid value: "gpu": must be a standard resource type',
    ),
    ("f: Required value: schemas are required", "f: Required value"),
    ('f: Invalid value: "": uid must not be empty', 'f: Invalid value: "": must not be empty'),
    ('f: Invalid value: "object": not seven', "f: Invalid value: not seven"),
    (
        'labels: Invalid value: "a": name part must be no more than 63 characters',
        'labels: Invalid value: "a": name part must be no more than 63 bytes',
    ),
    (
        'labels: Invalid value: "/": a qualified name must',
        'labels: Invalid value: "/": a valid label key must',
    ),
    (
        f'metadata.name: Invalid value: "a.b": a DNS-1035 label must consist of {_MUST}',
        'metadata.name: Invalid value: "a.b": must not contain dots',
    ),
    (
        'omits key field "k" (and doesn\'t have default value)',
        'omits all key fields ["k"] (and doesn\'t have default values for any key fields)',
    ),
    (
        "f: Invalid value: {}: uncountedTerminatedPods needs to be empty for finished job",
        "f: Invalid value: {}: must be empty for finished job",
    ),
    (
        'f: Invalid value: "T": completionTime cannot be set before startTime',
        'f: Invalid value: "T": must be equal to or after `startTime`',
    ),
    (
        'f: Invalid value: "T": completionTime cannot be mutated',
        'f: Invalid value: "T": field is immutable',
    ),
]


@pytest.mark.parametrize(("older", "newer"), EXAMPLES)
def test_messages_of_the_oldest_server_are_normalized(older: str, newer: str) -> None:
    assert normalize_message(older, _OLDEST) == newer
    assert normalize_message(newer, _OLDEST) == newer


@pytest.mark.parametrize("older", [older for older, _ in EXAMPLES])
def test_messages_of_the_newest_server_are_unchanged(older: str) -> None:
    assert normalize_message(older, _NEWEST) == older


def test_value_of_a_wrong_type_is_shown_by_its_type_in_all_versions() -> None:
    said = 'spec.tags: Invalid value: "object": spec.tags in body must be of type array: "object"'
    assert normalize_message(said, _OLDEST) == said


def test_each_message_change_has_an_example() -> None:
    for row in MESSAGE_CHANGES:
        assert any(re.search(row.older, older) for older, _ in EXAMPLES), row

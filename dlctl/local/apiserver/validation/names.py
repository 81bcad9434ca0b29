"""Syntax of names, labels and port names, with the error messages of the real server.

Each check returns the errors of one string; an empty list means valid.
"""

import re
from collections.abc import Callable
from typing import Final

NameValidator = Callable[[str], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"


def dns_label(text: str) -> list[str]:
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    if "." in text and re.fullmatch(_SUBDOMAIN, text):
        return [*_limit(text, 63), "must not contain dots"]
    return _limit(text, 63) + _match(text, _LABEL, rule, "my-name", "123-abc")


def dns_subdomain(text: str) -> list[str]:
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character"
    )
    return _limit(text, 253) + _match(text, _SUBDOMAIN, rule, "example.com")


def dns_1035_label(text: str) -> list[str]:
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
        "an alphabetic character, and end with an alphanumeric character"
    )
    return _limit(text, 63) + _match(text, _LABEL_1035, rule, "my-name", "abc-123")


def label_value(text: str) -> list[str]:
    rule = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character"
    )
    pattern = f"({_QUALIFIED})?"
    limit = _limit(text, 63, "bytes")
    return limit + _match(text, pattern, rule, "MyValue", "my_value", "12345")


def qualified_name(text: str) -> list[str]:
    """Check the key of a label or annotation: an optional domain, a slash, a name."""
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character"
    )
    examples = ("MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [_failed(f"a valid label key {rule}", _QUALIFIED, *examples) + hint]
    found: list[str] = []
    if slash:
        messages = dns_subdomain(prefix) if prefix else ["must be non-empty"]
        found += [f"prefix part {message}" for message in messages]
    messages = [] if name else ["must be non-empty"]
    messages += _limit(name, 63, "bytes") + _match(name, _QUALIFIED, rule, *examples)
    return found + [f"name part {message}" for message in messages]


def env_name(text: str) -> list[str]:
    if not text:
        return ["environment variable name must be non-empty"]
    if all(" " <= char <= "~" and char != "=" for char in text):
        return []
    rule = (
        "a valid environment variable name must consist only of printable ASCII characters "
        "other than '='"
    )
    return [rule]


def config_key(text: str) -> list[str]:
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    examples = ("key.name", "KEY_NAME", "key-name")
    found = _limit(text, 253) + _match(text, _CONFIG_KEY, rule, *examples)
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


def port_name(text: str) -> list[str]:
    found = _limit(text, 15)
    if re.fullmatch("[-a-z0-9]+", text) is None:
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def _limit(text: str, maximum: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {maximum} {unit}"] if len(text.encode()) > maximum else []


def _match(text: str, pattern: str, rule: str, *examples: str) -> list[str]:
    return [] if re.fullmatch(pattern, text) else [_failed(rule, pattern, *examples)]


def _failed(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"

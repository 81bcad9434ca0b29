"""String formats of structural schemas; unknown ones are ignored, as in the real server.

A format is a predicate on strings. Number formats (int32, double) are ranges; see ``validation``.
"""

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
_ANY = "[0-9a-f]{4}"
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w)(\S*)")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")


def _matches(pattern: str) -> Callable[[str], bool]:
    expression = re.compile(pattern)
    return lambda text: expression.search(text) is not None


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _is_date(text: str) -> bool:
    if (match := _DATE.fullmatch(text)) is None:
        return False
    year, month, day = map(int, match.groups())
    try:
        # Python has no year 0, a leap year like 2000.
        datetime.date(year or 2000, month, day)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    """Return whether the real server takes a text for a time; Go may not be able to parse it."""
    day, *rest = text.lower().split("t")
    match = _TIME.fullmatch(rest[0]) if rest and _is_date(day) else None
    return match is not None and match[1] <= "23" and max(match[2], match[3]) <= "59"


def _is_uri(text: str) -> bool:
    return text.startswith("/") or bool(urlsplit(text).scheme)


def _is_short_name(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(_LABEL, text) is not None


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text) is not None


def _is_hostname(text: str) -> bool:
    label = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
    return len(text) <= 255 and re.fullmatch(rf"{label}(\.{label})*\.?", text) is not None


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "uri": _is_uri,
    "email": _matches(r"^[^@\s]+@[^@\s]+$"),
    "hostname": _is_hostname,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_interface(text) if "/" in text else int("no mask")),
    "mac": _matches(r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"),
    "uuid": _matches(_UUID % (_ANY, _ANY)),
    "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", _ANY)),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "hexcolor": _matches(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "password": lambda text: True,
    "date": _is_date,
    "datetime": _is_date_time,
    "date-time": _is_date_time,
    "duration": lambda text: text == "0" or _DURATION.fullmatch(text) is not None,
    "k8s-short-name": _is_short_name,
    "k8s-long-name": _is_long_name,
}

"""Label selectors as objects have them, such as Jobs and aggregated roles, matched against labels.

Those of requests are text, which the endpoints parse.
"""

from collections.abc import Mapping
from typing import Any

from dlctl.api.json_types import JSON


def selects(selector: JSON, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector, with ``matchLabels`` and so on, matches the labels."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _matches(each, labels) for each in selector.get("matchExpressions") or ()
    )


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.get("key", "")), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            # A malformed selector selects nothing.
            return False

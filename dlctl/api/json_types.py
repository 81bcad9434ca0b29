"""JSON objects: one that its holder may change, and one that it only reads."""

from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]
ReadOnlyJSON = Mapping[str, Any]

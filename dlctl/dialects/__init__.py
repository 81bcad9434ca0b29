"""The dialects: how each API group represents jobs in specs, statuses, names and schemas."""

from dlctl.dialects.dialect import DecodedObject, Dialect

__all__ = ("DecodedObject", "Dialect")

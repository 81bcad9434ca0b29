"""The dialects: how each API group represents jobs in specs, statuses, names and schemas.

Of the wire form, ``decode`` makes JSON of text, ``read`` a value of ``dlctl.api`` of JSON, and
``write`` JSON of such a value.
"""

from dlctl.dialects.dialect import DecodedObject, Dialect

__all__ = ("DecodedObject", "Dialect")

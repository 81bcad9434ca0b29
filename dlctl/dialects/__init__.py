"""How one API group spells a job: wire form, status, names and labels, schema."""

from dlctl.dialects.dialect import DecodedObject, Dialect

__all__ = ("DecodedObject", "Dialect")

"""How one API group spells a job: wire form, status, names and labels, schema."""

from dlctl.dialects.dialect import Dialect

__all__ = ("Dialect",)

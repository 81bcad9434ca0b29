"""The program, run in this process."""

from tests.cli.conftest import dlctl

__all__ = ("dlctl",)

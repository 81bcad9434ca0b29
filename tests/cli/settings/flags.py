"""Reading the flags of the controller."""

import argparse
from collections.abc import Mapping

from dlctl.cli.arguments import CommandParser
from dlctl.cli.settings.sources import (
    add_settings,
    load_settings,
)
from dlctl.options import Options


def read(*arguments: str, environment: Mapping[str, str] | None = None) -> Options:
    return load_settings(parsed(*arguments), environment or {})


def parsed(*arguments: str) -> argparse.Namespace:
    parser = CommandParser()
    add_settings(parser)
    return parser.parse_args(arguments)

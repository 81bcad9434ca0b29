"""The command line as a whole: finds the command, runs it, turns errors into messages.

Exit codes: 0 done, 1 failed, 2 a wrong setting or manifest, 130 interrupted.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from dlctl.cli.arguments import CommandParser
from dlctl.errors import ConfigError, DlctlError, InvalidJobError

# Each is a module of this package, imported when it is asked for: some bring a lot along.
COMMANDS: Final[Mapping[str, str]] = {
    "run": "run jobs on this machine and watch them",
    "up": "run a cluster on this machine, for kubectl",
    "controller": "run the operator against a cluster",
    "crds": "print the CustomResourceDefinitions as YAML",
    "rbac": "print the role that the controller needs as YAML",
    "release": "let waiting launchers start, before another operator takes over",
    "render": "print the children that jobs would get, offline",
}


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    args = _parser(arguments).parse_args(arguments)
    try:
        return int(args.command(args))
    except (ConfigError, InvalidJobError) as error:
        print(f"dlctl: {error}", file=sys.stderr)
        return 2
    except DlctlError as error:
        print(f"dlctl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as ``| head`` does. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dlctl",
        description="Distributed deep-learning jobs on Kubernetes, and on this machine.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(name, help=help_)
        if name in arguments[:1]:
            importlib.import_module(f"dlctl.cli.{name}").configure(command)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"dlctl {version('dlctl')}")
        parser.exit()

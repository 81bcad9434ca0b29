"""Entry point of the command line: finds the command, runs it, prints errors.

Exit codes: 0 success, 1 failure, 2 invalid setting or manifest, 130 interrupted.
"""

import argparse
import errno
import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dlctl.cli.arguments import CommandParser
from dlctl.cli.completion import complete, requested_words
from dlctl.cli.suggestions import did_you_mean
from dlctl.errors import DISK_FULL, ConfigError, DlctlError, InvalidJobError


class Command(NamedTuple):
    """A command: its ``module:function`` in this package that adds its arguments, and its help."""

    configure: str
    help: str


# Their modules are imported on demand: some import a lot.
COMMANDS: Final[Mapping[str, Command]] = {
    "run": Command("run:configure", "run jobs on this machine and watch them"),
    "check": Command(
        "check:configure", "say what manifests are and what is wrong with them, offline"
    ),
    "new": Command("new:configure", "print a manifest to start from"),
    "up": Command("up:configure", "run a cluster on this machine, for kubectl"),
    "down": Command("down:configure", "end a cluster that runs in the background"),
    "get": Command("jobs.get:configure", "list jobs, or print some of them"),
    "logs": Command("jobs.logs:configure", "print the output of a job's replicas"),
    "why": Command(
        "jobs.describe:configure_why", "explain what a job did, why it failed and what it waits for"
    ),
    "describe": Command(
        "jobs.describe:configure_describe", "show a job, its replicas and its history"
    ),
    "port-forward": Command(
        "jobs.port_forward:configure", "open ports of a job's replica on this machine"
    ),
    "delete": Command("jobs.delete:configure", "delete jobs with their pods"),
    "suspend": Command(
        "jobs.suspension:configure_suspend", "suspend jobs: their pods go, the jobs stay"
    ),
    "resume": Command("jobs.suspension:configure_resume", "resume suspended jobs"),
    "completion": Command("completion:configure", "print the code for the completion of a shell"),
    "controller": Command("controller:configure", "run the operator against a cluster"),
    "crds": Command("crds:configure", "print the CustomResourceDefinitions as YAML"),
    "rbac": Command("rbac:configure", "print the role that the controller needs as YAML"),
    "release": Command(
        "release:configure", "ungate waiting launchers before another operator takes over"
    ),
    "render": Command("render:configure", "print the child objects of jobs, offline"),
}
# Errors of a check of a path that cannot be looked up.
_BAD_PATH: Final = (errno.EACCES, errno.ENAMETOOLONG)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    if (words := requested_words()) is not None:
        complete(_parser(words))
    try:
        try:
            return _executed(arguments)
        finally:
            # At exit, Python would print a traceback if this fails.
            sys.stdout.flush()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _has_lost_directory():
            print("dlctl: the current directory was deleted: change to another", file=sys.stderr)
            return 2
        is_bad_path = error.errno in _BAD_PATH and error.filename is not None
        # Without a word if the reader of our output is gone, as with ``| head``.
        if not isinstance(error, BrokenPipeError):
            if not is_bad_path and error.errno not in DISK_FULL:
                raise
            place = f"{error.filename}: " if error.filename else ""
            print(f"dlctl: {place}{error.strerror}", file=sys.stderr)
        if is_bad_path:
            return 2
        # Otherwise Python complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _has_lost_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _executed(arguments: Sequence[str]) -> int:
    parser = _parser(arguments)
    name = next(iter(arguments), "")
    if name and not name.startswith("-") and name not in COMMANDS:
        fix = f"; `dlctl run {shlex.quote(name)}` runs a job" if os.path.isfile(name) else ""
        fix = fix or did_you_mean(name, COMMANDS) or "; `dlctl --help` lists them"
        parser.error(f"there is no command {name}{fix}")
    args = parser.parse_args(arguments)
    try:
        return int(args.command(args))
    except (ConfigError, InvalidJobError) as error:
        print(f"dlctl: {error}", file=sys.stderr)
        return 2
    except DlctlError as error:
        print(f"dlctl: {error}", file=sys.stderr)
        return 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dlctl",
        description="Run distributed deep-learning jobs on Kubernetes, or on this machine.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.help)
        if name in arguments[:1]:
            module, _, configure = command.configure.partition(":")
            getattr(importlib.import_module(f"dlctl.cli.{module}"), configure)(subparser)
    return parser


class _Version(argparse.Action):
    """Looks up the version only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"dlctl {version('dlctl')}")
        parser.exit()

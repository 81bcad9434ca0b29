"""The command line as a whole: finds the command, runs it, turns errors into messages.

Exit codes: 0 done, 1 failed, 2 a wrong setting or manifest, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from dlctl.cli import controller, crds, render, up
from dlctl.cli import run as run_command
from dlctl.errors import ConfigError, DlctlError, InvalidJobError

COMMANDS: Final = (run_command, up, controller, crds, render)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="dlctl",
        description="Distributed deep-learning jobs on Kubernetes, and on this machine.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    args = parser.parse_args(arguments)
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

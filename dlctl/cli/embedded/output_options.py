"""Arguments of ``run`` about what is shown and kept, and when a job is given up."""

import argparse
from pathlib import Path

import attrs

from dlctl.cli.display.log_selection import MAX_SHOWN, LogSelection
from dlctl.cli.display.restart_limit import DEFAULT, max_restarts
from dlctl.cli.duration_argument import duration_s
from dlctl.cli.embedded.argument_checks import home_path
from dlctl.errors import ConfigError, config_errors


@attrs.frozen
class OutputOptions:
    """Options about logs, the final status, and limits."""

    selection: LogSelection = attrs.field(factory=LogSelection)
    logs: Path | None = None
    yaml: bool = False
    timeout_s: float | None = None
    max_restarts: int | None = DEFAULT


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replica",
        action="append",
        default=[],
        metavar="NAME",
        help="show the logs of a replica such as worker-1, of a type such as worker, or of all; "
        f"repeatable; default: all, or the chief alone of more than {MAX_SHOWN}",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show no logs")
    parser.add_argument(
        "--logs",
        type=home_path,
        metavar="DIR",
        help="keep all logs in DIR: one file for each start of a container, and the controller's",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=["yaml"],
        help="print the final status of the jobs, and everything else to stderr",
    )
    parser.add_argument(
        "--timeout",
        type=duration_s,
        metavar="TIME",
        help="fail if the jobs take longer: 90, 90s, 1m30s, 2h",
    )
    parser.add_argument(
        "--max-restarts",
        type=max_restarts,
        default=DEFAULT,
        metavar="N",
        help="fail when a replica would be restarted more often, also in place by its "
        "restartPolicy; or: unlimited (%(default)s)",
    )


def parse_output_options(args: argparse.Namespace) -> OutputOptions:
    """Parse the arguments, and make the directory of the logs.

    :raises ConfigError: if that is not possible.
    """
    if args.quiet and args.replica:
        raise ConfigError("--quiet shows no logs: leave out --replica")
    if args.logs is not None:
        with config_errors(f"--logs {args.logs}"):
            args.logs.mkdir(parents=True, exist_ok=True)
    return OutputOptions(
        LogSelection(tuple(args.replica), args.quiet),
        args.logs,
        args.output == "yaml",
        args.timeout,
        args.max_restarts,
    )

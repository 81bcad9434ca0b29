"""``dlctl run``: run jobs on an embedded cluster and watch them until they finish.

Imports little; the work is in :mod:`dlctl.cli.run_session`.
"""

import argparse
from pathlib import Path

from dlctl.cli.durations import duration_s
from dlctl.cli.interrupts import run_until_signalled
from dlctl.cli.local_options import add_local_arguments, parse_local_options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run jobs on an embedded cluster, watch them until they finish, and tear everything down. "
        "Exit code: 0 if all jobs succeeded, 1 if not, 2 for an invalid manifest or setting."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifests, - for stdin")
    add_local_arguments(parser)
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        help="namespace of objects that set none (%(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=duration_s,
        metavar="TIME",
        help="fail if the jobs take longer: 90, 90s, 1m30s, 2h",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the cluster running afterwards, until Ctrl-C"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write the last screen to FILE as SVG"
    )
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    options = parse_local_options(args)
    from dlctl.cli.run_session import RunSession

    session = RunSession(
        files=args.files,
        options=options,
        namespace=args.namespace,
        timeout_s=args.timeout,
        keep=args.keep,
        record=args.record,
    )
    return run_until_signalled(session.run)

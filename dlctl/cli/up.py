"""``dlctl up``: the embedded cluster alone, until Ctrl-C.

Light at import; what runs is in :mod:`dlctl.cli.up_session`.
"""

import argparse
from pathlib import Path

from dlctl.cli.interrupts import run_until_signalled
from dlctl.cli.local_options import add_local_arguments, parse_local_options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run an embedded cluster and the controller in the foreground, until Ctrl-C."
    )
    add_local_arguments(parser)
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="PATH", help="write the kubeconfig there as well"
    )
    parser.add_argument(
        "--port", type=int, default=0, help="of the API server; 0 is any free one (%(default)s)"
    )
    parser.add_argument(
        "--no-controller",
        dest="controller",
        action="store_false",
        help="serve the kinds, but leave jobs to a controller that is run elsewhere",
    )
    parser.set_defaults(command=up)


def up(args: argparse.Namespace) -> int:
    options = parse_local_options(args, port=args.port)
    from dlctl.cli.up_session import UpSession

    foreground = UpSession(options, args.kubeconfig, controller=args.controller)
    return run_until_signalled(foreground.run)

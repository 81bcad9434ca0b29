"""``dlctl up``: run the embedded cluster until Ctrl-C.

Imports little; the work is in :mod:`dlctl.cli.up_session`.
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
        "--kubeconfig", type=Path, metavar="PATH", help="also write the kubeconfig to PATH"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the API server; 0 picks a free one (%(default)s)",
    )
    parser.add_argument(
        "--no-controller",
        dest="controller",
        action="store_false",
        help="install the CRDs, but run no controller: start your own",
    )
    parser.set_defaults(command=up)


def up(args: argparse.Namespace) -> int:
    options = parse_local_options(args, port=args.port)
    from dlctl.cli.up_session import UpSession

    foreground = UpSession(options, args.kubeconfig, controller=args.controller)
    return run_until_signalled(foreground.run)

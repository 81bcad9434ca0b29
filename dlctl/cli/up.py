"""``dlctl up``: run the embedded cluster until Ctrl-C, or in the background.

Imports little; the work is in :mod:`dlctl.cli.embedded.up_session`.
"""

import argparse
from collections.abc import Callable
from contextlib import ExitStack

from dlctl.cli.embedded.argument_checks import home_path
from dlctl.cli.embedded.cluster_options import add_cluster_arguments, parse_cluster_options
from dlctl.cli.embedded.detached import detach
from dlctl.cli.embedded.named_clusters import DEFAULT_NAME, NamedCluster
from dlctl.cli.interrupts import run_until_signalled
from dlctl.errors import ConfigError
from dlctl.local.file_lock import write_holder


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run an embedded cluster and the controller until Ctrl-C, or with --detach until "
        "`dlctl down`. Several may run side by side."
    )
    add_cluster_arguments(parser)
    parser.add_argument(
        "-d", "--detach", action="store_true", help="run in the background, until `dlctl down`"
    )
    parser.add_argument("--name", default=DEFAULT_NAME, help="its name with --detach (%(default)s)")
    parser.add_argument(
        "--data",
        type=home_path,
        metavar="DIR",
        help="keep all objects and PersistentVolumeClaims in DIR, and continue with them",
    )
    parser.add_argument(
        "--kubeconfig", type=home_path, metavar="PATH", help="also write the kubeconfig to PATH"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the API server; 0 picks a free one, or that of the last time in DIR "
        "(%(default)s)",
    )
    parser.add_argument(
        "--no-controller",
        dest="controller",
        action="store_false",
        help="install the CRDs, but run no controller: start your own",
    )
    parser.set_defaults(command=up)


def up(args: argparse.Namespace) -> int:
    options = parse_cluster_options(args, port=args.port)
    if args.name != DEFAULT_NAME and not args.detach:
        raise ConfigError(f"--name {args.name}: only a cluster with --detach has a name")
    with ExitStack() as stack:
        announce: Callable[[str], None] = _print
        end, kubeconfig = "Press Ctrl-C to stop.", args.kubeconfig
        if args.detach:
            cluster = NamedCluster.of(args.name)
            lock = stack.enter_context(cluster.claimed())
            announce = detach(cluster.log)
            write_holder(lock)
            end = f"It runs in the background until `{cluster.end_command}`; log: {cluster.log}"
            kubeconfig = kubeconfig or cluster.kubeconfig
        from dlctl.cli.embedded.up_session import UpSession

        session = UpSession(
            options=options,
            kubeconfig=kubeconfig,
            data=args.data.absolute() if args.data else None,
            controller=args.controller,
            announce=announce,
            end=end,
        )
        return run_until_signalled(session.run)


def _print(text: str) -> None:
    print(text, flush=True)

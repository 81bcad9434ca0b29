"""``python -m e2e.cluster``: build, start, load and stop a cluster.

``run`` does it around one command, which finds the cluster in ``KUBECONFIG``, and its folder in
``E2E_CLUSTER``. With real nodes it does so in a network of its own, so that two can run at a time.
"""

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from e2e.cluster import programs
from e2e.cluster.build import build
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.errors import ClusterError
from e2e.cluster.image import write_archive
from e2e.cluster.network import create_bridge, start_services
from e2e.cluster.node import Node
from e2e.cluster.programs import MPI_OPERATOR, Release

_IN_NAMESPACES: Final = "E2E_CLUSTER_APART"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    built = commands.add_parser("build", help="build the programs that are not in the cache")
    built.add_argument(
        "--what", choices=("control-plane", "node", MPI_OPERATOR.name), default="node"
    )
    up = commands.add_parser("up", help="start a cluster and print the path of its kubeconfig")
    down = commands.add_parser("down", help="end a cluster and its containers")
    load = commands.add_parser("load", help="import OCI archives into the real nodes")
    image = commands.add_parser("image", help="wrap a root file system as an OCI archive")
    run = commands.add_parser("run", help="run a command with a cluster around it")
    for command in (built, up, down, load, run):
        newest = Release.NEWEST
        command.add_argument("--k8s", type=Release, choices=list(Release), default=newest)
    for command in (up, down, load):
        command.add_argument("directory", type=Path)
    for command in (up, run):
        command.add_argument("--kwok", type=int, default=0, metavar="N", help="pretended nodes")
        command.add_argument("--nodes", type=int, default=0, metavar="N", help="real ones; as root")
        command.add_argument("--audit", action="store_true", help="log all requests to audit.log")
        command.add_argument(
            "--load", type=Path, action="append", default=[], metavar="ARCHIVE", help="as load does"
        )
    load.add_argument("archive", type=Path, nargs="+")
    image.add_argument("name")
    image.add_argument("root", type=Path, help="tar file of the root file system")
    image.add_argument("out", type=Path)
    image.add_argument("entrypoint", nargs="*")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run(args: argparse.Namespace) -> int:
    match args.command:
        case "build":
            _build(args.k8s, args.what)
        case "up":
            _up(_plane(args), args)
            sys.stdout.write(f"{_plane(args).kubeconfig}\n")
        case "down":
            _down(_plane(args))
        case "load":
            _load(_nodes(_plane(args)), args.archive)
        case "image":
            write_archive(args.out, args.name, args.root, args.entrypoint)
        case _:
            return _run_inside(args)
    return 0


def _plane(args: argparse.Namespace) -> ControlPlane:
    return ControlPlane(args.directory.resolve(), programs.folder(args.k8s))


def _build(release: Release, what: str) -> None:
    wanted, folder = programs.control_plane(release), programs.folder(release)
    if what == "node":
        wanted += programs.node(release)
    elif what == MPI_OPERATOR.name:
        wanted, folder = [MPI_OPERATOR], programs.mpi_operator_folder()
    built = build(wanted, folder)
    sys.stdout.write(f"{folder}: built {', '.join(built) or 'nothing, all is there'}\n")


def _up(plane: ControlPlane, args: argparse.Namespace) -> None:
    _build_quietly(args)
    if args.nodes:
        create_bridge(args.nodes)
    plane.up(for_nodes=args.nodes > 0, audit=args.audit)
    if args.kwok:
        plane.add_kwok_nodes(args.kwok, apart=args.nodes > 0)
    if args.nodes:
        start_services(plane)
        nodes = [Node(plane, number + 1) for number in range(args.nodes)]
        for node in nodes:
            node.up()
        _load(nodes, args.load)


def _load(nodes: Sequence[Node], archives: Sequence[Path]) -> None:
    # Mostly unpacking, and each node has its own store.
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: [node.load(archive) for archive in archives], nodes))


def _build_quietly(args: argparse.Namespace) -> None:
    wanted = programs.control_plane(args.k8s)
    build(wanted + (programs.node(args.k8s) if args.nodes else []), programs.folder(args.k8s))


def _nodes(plane: ControlPlane) -> list[Node]:
    numbers = itertools.count(1)
    nodes = (Node(plane, number) for number in numbers)
    return list(itertools.takewhile(lambda node: node.directory.exists(), nodes))


def _down(plane: ControlPlane) -> None:
    for node in _nodes(plane):
        node.down()
    plane.down()


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # A second signal, which ``timeout`` sends, must not interrupt the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def _enter_namespaces() -> NoReturn:
    """Restart this process in its own network and mount namespaces."""
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "e2e.cluster", *sys.argv[1:]]
    os.execvpe(command[0], command, os.environ | {_IN_NAMESPACES: "1"})


def _run_inside(args: argparse.Namespace) -> int:
    program = [arg for index, arg in enumerate(args.program) if index or arg != "--"]
    if not program:
        raise ClusterError("run needs a program: run [options] -- PROGRAM ...")
    if args.nodes and _IN_NAMESPACES not in os.environ:
        _enter_namespaces()
    # As after Ctrl-C: clean up even if a timeout ends the command.
    signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="dlctl-e2e-", ignore_cleanup_errors=True) as scratch:
        plane = ControlPlane(Path(scratch), programs.folder(args.k8s))
        try:
            _up(plane, args)
            return subprocess.run(program, env=_environment(plane), check=False).returncode
        finally:
            _down(plane)


def _environment(plane: ControlPlane) -> dict[str, str]:
    return os.environ | {
        "KUBECONFIG": str(plane.kubeconfig),
        "E2E_CLUSTER": str(plane.directory),
        # With the kubectl of its version.
        "PATH": f"{plane.programs}:{os.environ['PATH']}",
    }


if __name__ == "__main__":
    sys.exit(main())

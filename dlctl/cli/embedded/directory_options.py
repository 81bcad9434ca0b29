"""The arguments ``--mount``, ``--workdir`` and ``--volumes``: directories that all pods use."""

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from dlctl.cli.embedded.argument_checks import path_of
from dlctl.errors import ConfigError, config_errors
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.protocol import Mount


def add_directory_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mount",
        action="append",
        default=[],
        metavar="SOURCE:TARGET[:ro]",
        help="show a file or directory of this machine at the path TARGET in every container; "
        "repeatable",
    )
    parser.add_argument(
        "--workdir",
        metavar="DIR",
        help="start containers that set no workingDir in DIR, where relative paths are looked up",
    )
    parser.add_argument(
        "--volumes",
        metavar="DIR",
        help="keep each PersistentVolumeClaim as the directory DIR/NAMESPACE/NAME "
        "(default: deleted at the end)",
    )


def parse_directories(args: argparse.Namespace) -> NodeDirectories:
    """Parse the arguments.

    :raises ConfigError: if a directory does not exist or cannot be created.
    """
    mounts = tuple(_mount(text) for text in args.mount)
    claims = _created(args.volumes) if args.volumes else None
    working_dir = _working_dir(args.workdir, mounts) if args.workdir else ""
    return NodeDirectories(mounts, working_dir, claims)


def shared_files_lines(mounts: Iterable[Mount], reason: str) -> Iterator[str]:
    """Yield what mounts cannot do where pods have no mount namespaces; nothing if they can all."""
    moved = [mount.target for mount in mounts if mount.source != mount.target]
    if moved:
        yield (
            f"--mount: pods share this machine's files ({reason}). {', '.join(moved)} is replaced "
            "by its source in commands, arguments, variables and workingDir; a program that "
            "has the path in its own code does not find it"
        )
    read_only = [mount.target for mount in mounts if mount.read_only]
    if read_only:
        yield f"--mount: {', '.join(read_only)} is not read-only: pods share this machine's files"


def deleted_claims_line(run_dir: Path) -> str:
    """Return a line that names the claims that end with the run directory; empty without any."""
    claims = NodeDirectories().claims_in(run_dir)
    names = [f"{path.parent.name}/{path.name}" for path in sorted(claims.glob("*/*"))]
    if not names:
        return ""
    return (
        f"deleted PersistentVolumeClaim {', '.join(names)}: "
        "keep the files with --volumes DIR, as DIR/NAMESPACE/NAME"
    )


def _mount(text: str) -> Mount:
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not (source and os.path.isabs(target) and mode in ("", "ro", "rw")):
        raise ConfigError(
            f"--mount {text}: write SOURCE:TARGET or SOURCE:TARGET:ro, "
            "with an absolute TARGET, such as ./src:/opt/app"
        )
    path = path_of("--mount", source)
    if not path.exists():
        raise ConfigError(f"--mount {text}: {source} does not exist")
    target = os.path.normpath(target)
    if target == os.path.sep:
        raise ConfigError(f"--mount {text}: nothing can be mounted over /; choose a directory")
    return Mount(str(path.resolve()), target, mode == "ro")


def _working_dir(text: str, mounts: Iterable[Mount]) -> str:
    path = path_of("--workdir", text)
    if not path.is_dir() and not any(path.is_relative_to(mount.target) for mount in mounts):
        raise ConfigError(
            f"--workdir {text}: it is neither a directory of this machine nor in a --mount"
        )
    return str(path)


def _created(text: str) -> Path:
    path = path_of("--volumes", text)
    with config_errors(f"--volumes {text}"):
        path.mkdir(parents=True, exist_ok=True)
    return path

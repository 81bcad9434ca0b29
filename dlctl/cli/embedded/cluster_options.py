"""Arguments that ``run`` and ``up`` share, and the check for the packages they need.

Imports nothing of the embedded cluster, so that ``dlctl --help`` is quick.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from dlctl.cli.embedded.argument_checks import path_of
from dlctl.cli.embedded.directory_options import add_directory_arguments, parse_directories
from dlctl.errors import ConfigError
from dlctl.local.apiserver.validation.names import label_value, qualified_name
from dlctl.local.node.directories import NodeDirectories

NetworkChoice = Literal["auto", "isolated", "host"]

_MAX_PORT: Final = 65535
_REQUIRED_PACKAGES: Final = ("cel_expr_python", "pyroute2", "re2", "rich", "trustme")


@attrs.frozen
class ClusterOptions:
    """Options of the embedded cluster."""

    images: Mapping[str, Path] = attrs.field(factory=dict)
    network: NetworkChoice = "auto"
    port: int = 0
    node_labels: Mapping[str, str] = attrs.field(factory=dict)
    hand_out_gpus: bool = True
    directories: NodeDirectories = attrs.field(factory=NodeDirectories)
    # Keeps all logs.
    log_dir: Path | None = None
    # How often a container restarts at once; later restarts wait, so that a run can end before
    # them. None for no limit.
    immediate_restarts: Callable[[], int | None] = lambda: None


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="NAME=PREFIX",
        help="run containers of image NAME (with or without tag) with the Python environment at "
        "PREFIX first on PATH; repeatable",
    )
    parser.add_argument(
        "--network",
        choices=get_args(NetworkChoice),
        default="auto",
        help="isolated: every pod has its own address (Linux); host: pods share this machine's "
        "ports; auto: isolated where the machine allows it (%(default)s)",
    )
    parser.add_argument(
        "--ignore-gpus",
        action="store_true",
        help="start pods that request GPUs without reserving any: all pods see all GPUs, if any",
    )
    parser.add_argument(
        "--node-label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a label of this machine, for pods with node selectors; repeatable",
    )
    add_directory_arguments(parser)


def parse_cluster_options(args: argparse.Namespace, *, port: int = 0) -> ClusterOptions:
    """Parse the arguments.

    :raises ConfigError: if one is invalid, or the extra ``local`` is not installed.
    """
    require_local_packages()
    if not 0 <= port <= _MAX_PORT:
        raise ConfigError(f"--port is {port}: use a number between 0 and {_MAX_PORT}")
    images = dict(_image(text) for text in args.image)
    return ClusterOptions(
        images=images,
        network=args.network,
        port=port,
        node_labels=dict(_label(text) for text in args.node_label),
        hand_out_gpus=not args.ignore_gpus,
        directories=parse_directories(args),
    )


def require_local_packages() -> None:
    """Check that the embedded cluster can run here.

    :raises ConfigError: with the way out, if it cannot.
    """
    if sys.platform != "linux":
        raise ConfigError(
            f"the embedded cluster needs Linux, this is {sys.platform}: run it in a Linux virtual "
            "machine or container (Lima, Colima, WSL, Docker). The commands for jobs in other "
            "clusters, such as `dlctl get`, work here"
        )
    missing = [name for name in _REQUIRED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            "the embedded cluster needs optional packages: pip install 'dlctl[local]' "
            f"(missing: {', '.join(missing)})"
        )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"--node-label {text}: write NAME=VALUE, such as accelerator=a100")
    for reason in (*qualified_name(name), *label_value(value)):
        raise ConfigError(f"--node-label {text}: {reason}")
    return name, value


def _image(text: str) -> tuple[str, Path]:
    name, equals, prefix = text.partition("=")
    if not (name and equals and prefix):
        raise ConfigError(f"--image {text}: write NAME=PREFIX, such as mxnet:1.9.1=.venv-mxnet")
    path = path_of("--image", prefix)
    if not path.exists():
        raise ConfigError(f"--image {text}: {prefix} does not exist")
    return name, path

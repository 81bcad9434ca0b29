"""``dlctl rbac``: print the controller's ClusterRole as YAML, for the installed frameworks."""

import argparse
import sys

import yaml

from dlctl.cli.installed_kinds import installed_kinds
from dlctl.dialects.rbac import cluster_role


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the ClusterRole that the controller needs for the kinds of all installed "
        "frameworks, with no more rules than it uses."
    )
    parser.set_defaults(command=print_role)


def print_role(_: argparse.Namespace) -> int:
    yaml.safe_dump(cluster_role(installed_kinds()), sys.stdout, sort_keys=False)
    return 0

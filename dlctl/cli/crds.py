"""``dlctl crds``: the CustomResourceDefinitions as YAML, ready for ``kubectl apply -f -``."""

import argparse
import sys
from typing import Any

import yaml

from dlctl.dialects.crds import definitions
from dlctl.dialects.kinds import kinds
from dlctl.frameworks.registry import installed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the CustomResourceDefinitions of all kinds, those of installed frameworks "
        "included, for `kubectl apply -f -`."
    )
    parser.set_defaults(command=print_crds)


def print_crds(_: argparse.Namespace) -> int:
    documents = [each for kind in kinds(installed()) for each in definitions(kind)]
    yaml.dump_all(documents, sys.stdout, _Dumper, sort_keys=False)
    return 0


class _Dumper(yaml.SafeDumper):
    """Writes out what occurs twice: not every reader of YAML knows its references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

"""``dlctl crds``: print the CustomResourceDefinitions as YAML for ``kubectl apply -f -``."""

import argparse
import sys
from typing import Any

import yaml

from dlctl.cli.installed_kinds import installed_kinds
from dlctl.dialects.kind_crds import kind_crds


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the CustomResourceDefinitions of all kinds, including those of installed "
        "frameworks, for `kubectl apply -f -`."
    )
    parser.set_defaults(command=print_crds)


def print_crds(_: argparse.Namespace) -> int:
    documents = [each for kind in installed_kinds() for each in kind_crds(kind)]
    yaml.dump_all(documents, sys.stdout, _Dumper, sort_keys=False)
    return 0


# The pure Python dumper takes seconds.
_BASE = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE):  # type: ignore[misc, valid-type]
    """Writes repeated values in full: some YAML parsers do not support aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

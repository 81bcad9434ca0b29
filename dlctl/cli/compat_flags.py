"""The command lines of the operators that dlctl replaces, as far as ours has nothing of that name.

Which names these are stands in one module for each operator; here they are taken.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.cli import et_operator, training_operator
from dlctl.options import Options

ALIASES: Final[Mapping[str, str]] = {**training_operator.ALIASES, **et_operator.ALIASES}
IGNORED: Final[Mapping[str, str]] = {**training_operator.IGNORED, **et_operator.IGNORED}
_BOOLEAN_FLAGS: Final = training_operator.BOOLEAN_FLAGS | et_operator.BOOLEAN_FLAGS


def add_ignored_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags without effect; those given are listed in ``ignored``."""
    parser.set_defaults(ignored=())
    for name in IGNORED:
        parser.add_argument(
            # With one dash it is found too, and then takes its value in every spelling.
            f"--{name.lstrip('-')}",
            action=_Ignored,
            const=name,
            nargs="?" if name in _BOOLEAN_FLAGS else None,
            metavar="TEXT",
            help=argparse.SUPPRESS,
        )


def ineffective_flags(args: argparse.Namespace, options: Options) -> Iterator[tuple[str, str]]:
    """Yield the flags that were given for nothing, and why each is."""
    for name in args.ignored:
        yield name, IGNORED[name]
    if options.kube_api_burst and options.kube_api_qps <= 0:
        yield "--kube-api-burst", "there is no limit without --kube-api-qps"


class _Ignored(argparse.Action):
    """Notes the flag, once, whatever its value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if self.const not in namespace.ignored:
            namespace.ignored = (*namespace.ignored, self.const)

"""Flags of the operators that dlctl replaces and that have no counterpart here.

Each operator's flags are listed in its own module; this one accepts them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.cli.settings import et_operator, mpi_operator, training_operator
from dlctl.options import Options

IGNORED: Final[Mapping[str, str]] = {
    **training_operator.IGNORED,
    **et_operator.IGNORED,
    **mpi_operator.IGNORED,
}
_BOOLEAN_FLAGS: Final = (
    training_operator.BOOLEAN_FLAGS | et_operator.BOOLEAN_FLAGS | mpi_operator.BOOLEAN_FLAGS
)


def add_ignored_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags without effect; those in use are listed in ``ignored``."""
    parser.set_defaults(ignored=())
    for name in IGNORED:
        parser.add_argument(
            # Registered with two dashes: a single dash is then accepted as well.
            f"--{name.lstrip('-')}",
            action=_Ignored,
            const=name,
            nargs="?" if name in _BOOLEAN_FLAGS else None,
            metavar="TEXT",
            help=argparse.SUPPRESS,
        )


def ineffective_flags(args: argparse.Namespace, options: Options) -> Iterator[tuple[str, str]]:
    """Yield each flag in use that has no effect, and the reason."""
    for name in args.ignored:
        yield name, IGNORED[name]
    if options.kube_api_burst and options.kube_api_qps <= 0:
        yield "--kube-api-burst", "requests are unlimited unless --kube-api-qps is set"


class _Ignored(argparse.Action):
    """Records that the flag is in use, once, whatever its value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if self.const not in namespace.ignored:
            namespace.ignored = (*namespace.ignored, self.const)

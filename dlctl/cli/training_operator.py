"""What the command line of Kubeflow's training-operator has and ours has not.

Other names of our settings, and flags that do nothing: they are taken so that a Deployment need
not be changed.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.options import Options

# Further names of settings, as fields: a flag, a variable and a key like any other.
ALIASES: Final[Mapping[str, str]] = {"controller_threads": "workers"}
# Variables that it reads; they are weaker than whatever names our own setting.
VARIABLES: Final[Mapping[str, str]] = {
    "KUBEFLOW_NAMESPACE": "namespace",
    "CUSTOM_CLUSTER_DOMAIN": "cluster_domain",
}
_NO_WEBHOOK: Final = "validation is in the CRDs, and there is no webhook"
_LEVEL: Final = "--log-level says how much is logged"
_FORMAT: Final = "--log-format says how records are written"
# Flags without effect, and why.
IGNORED: Final[Mapping[str, str]] = {
    "--webhook-server-port": _NO_WEBHOOK,
    "--webhook-service-name": _NO_WEBHOOK,
    "--webhook-secret-name": _NO_WEBHOOK,
    "--zap-log-level": _LEVEL,
    "--zap-devel": _FORMAT,
    "--zap-encoder": _FORMAT,
    "--zap-stacktrace-level": "a traceback is logged with whatever is a defect of the program",
    "--zap-time-encoding": "times are written as RFC 3339 has them",
    "-v": _LEVEL,
}
# Where a Go program would not take the next argument for the value.
_SWITCHES: Final = frozenset({"--zap-devel"})


def add_ignored_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags without effect; those given are listed in ``ignored``."""
    parser.set_defaults(ignored=())
    for name in IGNORED:
        parser.add_argument(
            # With one dash it is found too, and then takes its value in every spelling.
            f"--{name.lstrip('-')}",
            action=_Ignored,
            const=name,
            nargs="?" if name in _SWITCHES else None,
            metavar="TEXT",
            help=argparse.SUPPRESS,
        )


def without_effect(args: argparse.Namespace, options: Options) -> Iterator[tuple[str, str]]:
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

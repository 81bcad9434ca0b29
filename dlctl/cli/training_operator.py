"""What the command line of Kubeflow's training-operator has and ours has not.

Other names of our settings, and flags that do nothing: they are taken so that a Deployment need
not be changed.
"""

from collections.abc import Mapping
from typing import Final

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
BOOLEAN_FLAGS: Final = frozenset({"--zap-devel"})

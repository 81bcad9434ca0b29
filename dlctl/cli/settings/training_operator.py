"""Flags of Kubeflow's training-operator that dlctl accepts, so that its Deployment works unchanged.

Most are settings of ours; here are its variables, and the flags that have no effect.
"""

from collections.abc import Mapping
from typing import Final

# Its environment variables; any spelling of our own setting overrides them.
VARIABLES: Final[Mapping[str, str]] = {
    "KUBEFLOW_NAMESPACE": "namespace",
    "CUSTOM_CLUSTER_DOMAIN": "cluster_domain",
}
_NO_WEBHOOK: Final = "there is no webhook; the CRDs validate"
_LEVEL: Final = "use --log-level"
_FORMAT: Final = "use --log-format"
# Flags without effect, with the reason.
IGNORED: Final[Mapping[str, str]] = {
    "--controller-threads": "reconciles are concurrent, and their writes adapt to the API server",
    "--webhook-server-port": _NO_WEBHOOK,
    "--webhook-service-name": _NO_WEBHOOK,
    "--webhook-secret-name": _NO_WEBHOOK,
    "--zap-log-level": _LEVEL,
    "--zap-devel": _FORMAT,
    "--zap-encoder": _FORMAT,
    "--zap-stacktrace-level": "programming errors are logged with a traceback",
    "--zap-time-encoding": "times are in RFC 3339 format",
    "-v": _LEVEL,
}
# Flags that take no separate value in Go programs.
BOOLEAN_FLAGS: Final = frozenset({"--zap-devel"})

"""Flags of mpi-operator v2 that dlctl accepts, so that its Deployment works unchanged.

None of these names means anything else to training-operator or et-operator.
"""

from collections.abc import Mapping
from typing import Final

# Alternative names of settings, by field: each works as flag, variable and key.
ALIASES: Final[Mapping[str, str]] = {
    "kubeConfig": "kubeconfig",
    "gang_scheduling": "gang_scheduler_name",
    "lock_namespace": "leader_election_namespace",
    "monitoring_port": "metrics_bind_address",
}
_CONCURRENCY: Final = "reconciles are concurrent, and their writes adapt to the API server"
_STDERR: Final = "logs go to stderr"
# Flags without effect, with the reason.
IGNORED: Final[Mapping[str, str]] = {
    "--master": "use --kubeconfig",
    "--threadiness": _CONCURRENCY,
    "--controller-queue-rate-limit": _CONCURRENCY,
    "--controller-queue-burst": _CONCURRENCY,
    "--logtostderr": _STDERR,
    "--alsologtostderr": _STDERR,
    "--stderrthreshold": "use --log-level",
}
# Flags that take no separate value in Go programs.
BOOLEAN_FLAGS: Final = frozenset({"--logtostderr", "--alsologtostderr"})

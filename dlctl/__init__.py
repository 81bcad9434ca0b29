"""dlctl: one Kubernetes operator for distributed deep-learning jobs.

The classes below run jobs on this machine from Python, and need the extra ``local``. They are
imported on first use.
"""

import importlib
import typing
from typing import Any, Final

if typing.TYPE_CHECKING:
    from dlctl.blocking_cluster import BlockingCluster
    from dlctl.embedded_cluster import Cluster, JobFailedError, JobResult

__all__ = ("BlockingCluster", "Cluster", "JobFailedError", "JobResult")

_MODULES: Final = {
    "BlockingCluster": "dlctl.blocking_cluster",
    "Cluster": "dlctl.embedded_cluster",
    "JobFailedError": "dlctl.embedded_cluster",
    "JobResult": "dlctl.embedded_cluster",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dlctl.cli.local_options import require_local_packages

    require_local_packages()
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found

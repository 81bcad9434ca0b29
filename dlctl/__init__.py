"""dlctl: one Kubernetes operator for distributed deep-learning jobs.

The classes below run jobs on this machine from Python, and need the extra ``local``. They are
imported on first use.
"""

# Nothing else is imported here: the program handles no Ctrl-C before.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlctl.blocking_cluster import BlockingCluster
    from dlctl.embedded_cluster import Cluster, JobFailedError, JobResult
del TYPE_CHECKING

__all__ = ("BlockingCluster", "Cluster", "JobFailedError", "JobResult")

_MODULES = {
    "BlockingCluster": "dlctl.blocking_cluster",
    "Cluster": "dlctl.embedded_cluster",
    "JobFailedError": "dlctl.embedded_cluster",
    "JobResult": "dlctl.embedded_cluster",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from dlctl.cli.embedded.cluster_options import require_local_packages

    require_local_packages()
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found

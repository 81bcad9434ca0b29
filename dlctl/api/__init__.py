"""Values that all layers share: keys, objects, jobs, conditions. No I/O here."""

from dlctl.api.job import Job, Replica, ReplicaSpec

__all__ = ("Job", "Replica", "ReplicaSpec")

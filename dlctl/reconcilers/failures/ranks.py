"""Ranks of replicas that are one process each, where the kind of the job determines them."""

from collections.abc import Mapping
from typing import Final

from dlctl.api.job import Job, Replica

# Replica types in the order of their ranks, by kind.
_ORDER_BY_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "PyTorchJob": ("master", "worker"),
    "XGBoostJob": ("master", "worker"),
    "JAXJob": ("worker",),
}
# Where torchrun may start several processes in a replica, or assigns the ranks itself.
_FIELDS_OF_TORCHRUN: Final = ("nprocPerNode", "elasticPolicy")


def rank_of(job: Job, replica: Replica) -> int | None:
    """Return the rank of a replica's process; None unless it is certain."""
    order = _ORDER_BY_KIND.get(job.resource.kind, ())
    if replica.type not in order or any(job.spec.get(field) for field in _FIELDS_OF_TORCHRUN):
        return None
    before = order[: order.index(replica.type)]
    return replica.index + sum(job.replica_count(each) for each in before)

"""The replicas of the job ``linear``: their pods and services, which have names after them."""

from collections.abc import Iterable

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.support.fake_pods import replica_of
from tests.support.harness import ClusterHarness


def replicas(names: Iterable[str]) -> list[str]:
    """Return the replicas of pods or services with these names, in order."""
    return sorted(str(replica_of(name, "linear")) for name in names)


def pod_of(cluster: ClusterHarness, replica: str) -> JSON:
    (pod,) = [p for p in cluster.objects(PODS) if replicas([p["metadata"]["name"]]) == [replica]]
    return pod


def created(cluster: ClusterHarness, replica: str) -> int:
    """Return how many pods of a replica there have been so far."""
    return sum(n for member, n in cluster.history.created.items() if str(member.replica) == replica)

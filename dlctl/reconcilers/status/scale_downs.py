"""Replicas whose pods dlctl deletes after a scale-down: their ends are no failures. Pure.

If the job is scaled up before such a pod is gone, only the status shows that dlctl deletes it. If
the job ends first, only the status distinguishes such pods from those of an edit after the end.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.restart_attempts import pods_of_earlier_attempts

_MAX_DIGITS: Final = 5


def scaled_down_replicas(
    job: Job, observed: Observed, created: Collection[Replica]
) -> Mapping[str, frozenset[int]]:
    """Return by type the indexes of the replicas that were removed, until all their pods are gone.

    Those in ``created`` get new pods. The others stay until the last one is gone, so that pods that
    end one by one need one write of the status. Only failure policies decide about deletions.
    """
    if not job.has_failure_policy or job.status.membership is not None:
        return {}
    surplus = set(_surplus_replicas(job, observed))
    leaving = {o.replica for o in observed.replicas if o.state is ReplicaState.TERMINATING}
    known = {Replica(type_, i) for type_, found in job.status.scaled_down.items() for i in found}
    if not surplus and known.isdisjoint(leaving):
        return {}
    return _by_type((known | surplus).difference(created))


def surplus_replicas(job: Job, observed: Observed) -> Mapping[str, frozenset[int]]:
    """Return by type the indexes of the removed replicas whose pods exist; none of elastic jobs."""
    return {} if job.status.membership else _by_type(frozenset(_surplus_replicas(job, observed)))


def is_scaled_down(job: Job, replica: Replica) -> bool:
    """Return whether dlctl has deleted the pod that a replica had before it was removed."""
    return replica.index in job.status.scaled_down.get(replica.type, ())


def _by_type(replicas: Collection[Replica]) -> Mapping[str, frozenset[int]]:
    types = sorted({replica.type for replica in replicas})
    return {name: frozenset(r.index for r in replicas if r.type == name) for name in types}


def _surplus_replicas(job: Job, observed: Observed) -> Iterator[Replica]:
    """Yield the replicas of surplus pods but for those that earlier attempts have left."""
    earlier = {pod.metadata.uid for pod in pods_of_earlier_attempts(job, observed.surplus_pods)}
    for pod in observed.surplus_pods:
        if pod.metadata.uid not in earlier:
            yield from _replica_of(job, pod)


def _replica_of(job: Job, pod: Pod) -> Iterator[Replica]:
    name = pod.metadata.name
    digits = name.rpartition("-")[2]
    if digits.isdecimal() and len(digits) <= _MAX_DIGITS:
        found = (Replica(spec.type, int(digits)) for spec in job.replica_specs)
        yield from (replica for replica in found if job.child_name(replica) == name)

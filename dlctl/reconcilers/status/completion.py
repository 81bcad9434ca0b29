"""Whether a job has ended, how, and the first cause. Pure.

Once the ``success_replicas`` have succeeded, later failures of others do not matter.
"""

import datetime
from collections.abc import Iterator, Sequence

import attrs

from dlctl.api.job import Job
from dlctl.api.status import Failure
from dlctl.reconcilers.observe import Observed, ObservedReplica, ReplicaState
from dlctl.reconcilers.status.quorum import unmet


@attrs.frozen
class Completion:
    """The end of a job: a success if it has no failure."""

    failure: Failure | None = None


def completion(job: Job, observed: Observed, now: datetime.datetime) -> Completion | None:
    """Return how the job has ended, or None while it has not."""
    states = observed.states
    done = [states.get(r) is ReplicaState.SUCCEEDED for r in job.success_policy.success_replicas]
    if any(done) if job.success_policy.any_succeeds else done and all(done):
        return Completion()
    # A permanent failure of any replica ends the job: the others would wait for it forever.
    failed = [o for o in observed.replicas if o.state is ReplicaState.FAILED_PERMANENT]
    failures = [f for o in _required(job, failed) if (f := o.failure) is not None]
    failures += unmet(job, observed, now)
    if not failures:
        return None
    return Completion(min(failures, key=lambda failure: failure.time))


def _required(job: Job, failed: Sequence[ObservedReplica]) -> Iterator[ObservedReplica]:
    """Yield those that the job requires: of tolerated types, only ``success_replicas``."""
    policy = job.success_policy
    # A set, since it is checked for each of many replicas.
    success_replicas = frozenset(
        () if policy.any_succeeds or not failed else policy.success_replicas
    )
    for one in failed:
        if one.replica.type not in policy.tolerated_types or one.replica in success_replicas:
            yield one

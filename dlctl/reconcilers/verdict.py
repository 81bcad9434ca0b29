"""Whether a job has ended, how, and what was the first cause. Pure.

The deciders' success stands whatever becomes of the others afterwards.
"""

import datetime
from collections.abc import Iterator, Sequence

import attrs

from dlctl.api.job import Job
from dlctl.api.status import Failure
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation
from dlctl.reconcilers.staffing import lacking


@attrs.frozen
class Verdict:
    """The end of a job; without a failure, a success."""

    failure: Failure | None = None


def verdict(job: Job, observed: Observed, now: datetime.datetime) -> Verdict | None:
    """Return how the job has ended, or None while it has not."""
    situations = observed.situations
    done = [situations.get(r) is Situation.SUCCEEDED for r in job.deciders.succeed]
    if any(done) if job.deciders.one_is_enough else done and all(done):
        return Verdict()
    # An exit that no restart can better ends the job, whichever replica's it is: the others
    # would wait for it for ever.
    broken = [o for o in observed.replicas if o.situation is Situation.BROKEN]
    failures = [f for o in _needed(job, broken) if (f := o.failure) is not None]
    failures += lacking(job, observed, now)
    if not failures:
        return None
    return Verdict(min(failures, key=lambda failure: failure.time))


def _needed(job: Job, broken: Sequence[ObservedReplica]) -> Iterator[ObservedReplica]:
    """Yield those that the job cannot do without: of workers that come and go, the deciding one."""
    deciders = job.deciders
    # Each of many may be asked about.
    deciding = frozenset(() if deciders.one_is_enough or not broken else deciders.succeed)
    for one in broken:
        if one.replica.type not in deciders.dispensable or one.replica in deciding:
            yield one

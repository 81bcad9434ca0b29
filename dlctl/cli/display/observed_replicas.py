"""The replicas of a job as its pods show them, for commands. Pure."""

import datetime
from collections.abc import Iterator, Sequence

import attrs

from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.reconcilers.launcher_job.launcher_state import creation_order
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.observed_replica import ObservedReplica, observe_replica


def observed_replicas(
    job: Job, pods: Sequence[Pod], now: datetime.datetime
) -> Iterator[ObservedReplica]:
    """Yield the replicas of a job; a launcher runs in the newest pod of its batch/v1 Job, if any.

    Pods that the job does not own are those of that Job.
    """
    launches = [pod for pod in pods if pod.metadata.controller_uid != job.uid]
    for one in observe(job, Children(pods=pods), now).replicas:
        spec = job.replica_spec(one.replica.type)
        if spec is None or job.has_own_pod(one.replica) or not launches:
            yield one
        else:
            newest = max(launches, key=creation_order)
            if not newest.phase.finished:
                # A Job leaves restarts in place to the kubelet, which judges no exit codes.
                spec = attrs.evolve(spec, retry_policy=RetryPolicy.ALL)
            yield observe_replica(job, spec, one.replica, newest, now)

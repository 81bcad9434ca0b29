"""Terminations of the pod of a worker."""

import datetime
from typing import Any

from dlctl.api.job import Replica
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.reconcilers.termination import Termination, termination
from tests.builders import NOW, make_job, make_pod

JOB = make_job()
WORKER = Replica("worker", 0)
MINUTE = datetime.timedelta(minutes=1)
DISRUPTED: dict[str, Any] = {
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preemption"}]
}


def deletion(asked: datetime.datetime) -> dict[str, Any]:
    deadline = asked + datetime.timedelta(seconds=30)
    return {"deletionTimestamp": deadline.isoformat(), "deletionGracePeriodSeconds": 30}


def termination_of(
    *, retry_policy: RetryPolicy = RetryPolicy.TABLE, **pod: Any
) -> Termination | None:
    return termination(make_pod(JOB, WORKER, **pod), "mxnet", retry_policy=retry_policy, now=NOW)


def found(**pod: Any) -> Termination:
    end = termination_of(**pod)
    assert end is not None
    return end

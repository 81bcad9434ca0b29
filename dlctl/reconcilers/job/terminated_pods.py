"""The pods that have terminated since the last plan of their job, though they may be gone by now.

A pod may be deleted within milliseconds of its end, while a reconcile of its job waits for a write
or reads a large spec. The store no longer shows it to the next plan: the replica would run again,
and a failure would not count.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.reconcilers.handlers.job_queues import JobQueues

# The group and kind of a job, and its key.
_JobId = tuple[str, str, ObjectKey]
# Of a job, the newest ones: a tenant decides how long a job cannot be reconciled.
_MAX_PODS: Final = 1000


@attrs.frozen(eq=False)
class TerminatedPods:
    """The pods by job, each as last seen before its deletion was requested.

    They are kept until a plan that judges them is applied, or the job is gone or gets no plan: at
    most 1,000 of a job. A controller that starts has those that still exist.
    """

    queues: JobQueues
    _by_job: dict[_JobId, dict[str, Pod]] = attrs.field(init=False, factory=dict)

    def handle(self, change: Change[Pod]) -> None:
        """Keep a changed pod if it may have terminated; its container decides."""
        pod = change.new
        if pod is None or not _may_have_terminated(pod):
            return
        if (job := self._job_of(pod)) is not None:
            kept = self._by_job.setdefault(job, {})
            kept.pop(pod.metadata.name, None)
            kept[pod.metadata.name] = pod
            if len(kept) > _MAX_PODS:
                del kept[next(iter(kept))]

    def of(self, resource: Resource, key: ObjectKey, uid: UID) -> Mapping[str, Pod]:
        """Return the pods of a job, by name."""
        pods = self._by_job.get((resource.group, resource.kind, key), {})
        return {name: pod for name, pod in pods.items() if pod.metadata.controller_uid == uid}

    def remove(
        self, resource: Resource, key: ObjectKey, uid: UID, judged: Mapping[str, Pod]
    ) -> None:
        """Forget the pods of a job that an applied plan has judged, unless they have changed since.

        Those of another UID are forgotten as well: anybody may create them, and none is planned.
        """
        job = (resource.group, resource.kind, key)
        left = {
            name: pod
            for name, pod in self._by_job.pop(job, {}).items()
            if pod.metadata.controller_uid == uid and judged.get(name) is not pod
        }
        if left:
            self._by_job[job] = left

    def forget(self, resource: Resource, key: ObjectKey) -> None:
        """Forget the pods of a job that is gone, or gets no plan."""
        self._by_job.pop((resource.group, resource.kind, key), None)

    def _job_of(self, pod: Pod) -> _JobId | None:
        """Return the job that controls a pod; None if no reconcile would forget the pod."""
        reference = pod.metadata.controller
        if reference is None:
            return None
        found = self.queues.find(reference, pod.metadata.namespace or "")
        return None if found is None else (reference.group, reference.kind, found[1])


def _may_have_terminated(pod: Pod) -> bool:
    if pod.metadata.is_terminating:
        return False
    ends = (status.state.terminated for status in pod.container_statuses if status.state)
    return pod.phase.finished or any(end is not None for end in ends)

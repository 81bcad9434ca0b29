"""The stores that the reconciler of a kind reads: jobs, their children, and their scalers."""

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, UID, Object, ObjectKey, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod, PodPhase, Service
from dlctl.api.objects.scalers import ScalerObject
from dlctl.api.objects.workloads import Workload
from dlctl.api.status.waiting import Waiting
from dlctl.controller.expectations import ChildStore, Expectations
from dlctl.informers.store import Store, owner_value
from dlctl.reconcilers.children.dependents import ExistingDependents
from dlctl.reconcilers.children.rejected_children import RejectedChildren
from dlctl.reconcilers.job.terminated_pods import TerminatedPods
from dlctl.reconcilers.kueue.workload_waiting import workload_waiting
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.reconcilers.observe import Children

# The index of Workloads by all of their owners, a job or the pods of a group. A store's own index
# is by the controlling owner alone.
WORKLOADS_BY_OWNER: Final = "workloads-by-owner"
# Of one owner, the newest: Kueue makes one for each size of a job, and others may make thousands.
_MAX_WORKLOADS: Final = 64


def index_by_owner(workload: Workload) -> Iterator[str]:
    """Yield a Workload's owners."""
    for reference in workload.metadata.owner_references or ():
        yield owner_value(workload.metadata.namespace or "", reference.uid)


@attrs.frozen
class JobStores:
    """The stores of one kind, and the writes that they may not show yet."""

    resource: Resource
    jobs: Store[JobObject]
    pods: Store[Pod]
    terminated_pods: TerminatedPods
    services: Store[Service]
    dependents: Mapping[Resource, Store[DependentObject]]
    scalers: Mapping[Resource, Store[ScalerObject]]
    expectations: Expectations
    # The Jobs of launchers; empty for kinds that create none.
    launcher_jobs: Store[BatchJob]
    nodes: NodeTracker
    # Kueue's; empty where it is not installed.
    workloads: Store[Workload]
    # The positions of Workloads in the cluster queue as shown; empty if they are not read.
    queue_positions: Mapping[ObjectKey, str]

    def expectations_satisfied(self, namespace: str, job: UID) -> bool:
        """Return whether the stores show all writes for a job: its plan depends on them."""
        stores: dict[Resource, ChildStore] = {
            self.resource: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            BATCH_JOBS: self.launcher_jobs,
            **self.dependents,
            **self.scalers,
        }
        return self.expectations.satisfied(namespace, job, stores)

    def awaited_pod(self, job: Job) -> ObjectKey | None:
        """Return the pod whose start makes the job Running; None once it has started.

        One that runs already was seen before, or is not the job's.
        """
        first = next(iter(job.success_policy.running_replicas), None)
        if first is None or not job.has_own_pod(first):
            return None
        key = ObjectKey(job.key.namespace, job.child_name(first))
        pod = self.pods.get(key)
        return key if pod is None or pod.phase is PodPhase.PENDING else None

    def is_current(self, read: Object, awaited: ObjectKey | None) -> bool:
        """Return whether a plan is current: the spec as read, the awaited pod not running."""
        stored = self.jobs.get(read.metadata.key)
        if stored is None or stored.metadata.is_terminating:
            return False
        now, then = stored.metadata, read.metadata
        if (now.uid, now.generation) != (then.uid, then.generation):
            return False
        pod = self.pods.get(awaited) if awaited else None
        return pod is None or pod.phase is not PodPhase.RUNNING

    def is_name_taken(self, namespace: str, resource: Resource, name: str) -> bool:
        """Return whether a store shows an object of any owner under a child's name."""
        stores: dict[Resource, Container[ObjectKey]] = {
            PODS: self.pods,
            SERVICES: self.services,
            **self.dependents,
        }
        return resource in stores and ObjectKey(namespace, name) in stores[resource]

    def children(self, key: ObjectKey, job: UID, rejected: RejectedChildren) -> Children:
        """Return the children of a job, and why one could not be created recently."""
        namespace = key.namespace
        launcher_jobs = self.launcher_jobs.owned_by(namespace, job)
        launchers = (one.metadata.uid for one in launcher_jobs)
        pods = self.pods.owned_by(namespace, job)
        return Children(
            pods=pods,
            services=self.services.owned_by(namespace, job),
            dependents=self.dependents_of(namespace, job),
            rejection_wait=rejected.waiting,
            launcher_jobs=launcher_jobs,
            launcher_pods=[pod for uid in launchers for pod in self.pods.owned_by(namespace, uid)],
            nodes=self.nodes.current,
            kueue_wait=self._kueue_wait(namespace, job, pods),
            terminated_pods=self.terminated_pods.of(self.resource, key, job),
        )

    def dependents_of(self, namespace: str, job: UID) -> ExistingDependents:
        """Return the dependents of a job."""
        return {
            resource: store.owned_by(namespace, job) for resource, store in self.dependents.items()
        }

    def _kueue_wait(self, namespace: str, job: UID, pods: Sequence[Pod]) -> Waiting | None:
        """Return what Kueue's Workload of a job waits for; it belongs to the job or to its pods."""
        if not len(self.workloads):
            return None
        gated = (pod.metadata.uid for pod in pods if pod.scheduling_gates)
        for owner in (job, *itertools.islice(gated, 1)):
            found = self.workloads.indexed(WORKLOADS_BY_OWNER, owner_value(namespace, owner))
            for workload in found[-_MAX_WORKLOADS:]:
                position = self.queue_positions.get(workload.key)
                if (waits := workload_waiting(workload, position)) is not None:
                    return waits
        return None

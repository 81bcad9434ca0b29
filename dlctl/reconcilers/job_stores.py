"""The stores that the reconciler of a kind reads: jobs, their children, and their scalers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from dlctl.api.batch_jobs import BatchJob
from dlctl.api.dependents import DependentObject
from dlctl.api.elastic import ScalerObject
from dlctl.api.job import JobObject
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, UID, Resource
from dlctl.api.pods import Pod, Service
from dlctl.controller.expectations import Expectations
from dlctl.informers.store import Store
from dlctl.reconcilers.children.rejected_children import RejectedChildren
from dlctl.reconcilers.observe import Children

if TYPE_CHECKING:
    from dlctl.controller.expectations import ChildStore


@attrs.frozen
class JobStores:
    """The stores of one kind, and the writes that they may not show yet."""

    resource: Resource
    jobs: Store[JobObject]
    pods: Store[Pod]
    services: Store[Service]
    dependents: Mapping[Resource, Store[DependentObject]]
    scalers: Mapping[Resource, Store[ScalerObject]]
    expectations: Expectations
    # The Jobs of launchers; empty for kinds that create none.
    launcher_jobs: Store[BatchJob]

    def show_own_writes(self, job: UID) -> bool:
        """Return whether the stores show all writes for a job: its plan depends on them."""
        stores: dict[Resource, ChildStore] = {
            self.resource: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            BATCH_JOBS: self.launcher_jobs,
            **self.dependents,
            **self.scalers,
        }
        return self.expectations.satisfied(job, stores)

    def children(self, job: UID, rejected: RejectedChildren) -> Children:
        """Return the children of a job, and those that could not be created recently."""
        launcher_jobs = self.launcher_jobs.owned_by(job)
        return Children(
            self.pods.owned_by(job),
            self.services.owned_by(job),
            {resource: store.owned_by(job) for resource, store in self.dependents.items()},
            rejected.messages,
            rejected.actionable,
            launcher_jobs,
            [pod for one in launcher_jobs for pod in self.pods.owned_by(one.metadata.uid)],
        )

"""The plan of a job: everything that one reconcile writes, creates and deletes, as a value."""

from collections.abc import Collection, Iterator
from typing import Self

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Replica
from dlctl.api.meta import BATCH_JOBS, PODS, Object, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobStatus
from dlctl.durations import shortest_wait
from dlctl.reconcilers.children.collection_deletion import CollectionDeletion
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.children.gang_retries import GangRetry
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite
from dlctl.reconcilers.membership.membership_plan import MembershipPlan


@attrs.frozen
class Plan:
    """The writes, deletions and creations of a job, in this order; only its status if up to date.

    The status comes first: the reason for a deletion is persisted before the deletion.
    """

    status: JobStatus
    # Events about the change of the status, which wait with it.
    notes: tuple[EventNote, ...] = ()
    # Events about the other changes of this plan.
    action_notes: tuple[EventNote, ...] = ()
    deleted_pods: tuple[Pod, ...] = ()
    # The names of those that are replaced because they are outdated, also if they are new.
    outdated_pods: frozenset[str] = frozenset()
    # Long past their grace period: deleted without waiting for their nodes.
    force_deleted_pods: tuple[Pod, ...] = ()
    deleted_services: tuple[Service, ...] = ()
    # Deleted by one request each, and not among those above.
    deleted_collections: tuple[CollectionDeletion, ...] = ()
    # Replicas whose pods are tried by a dry run before there are services.
    dry_runs: tuple[Replica, ...] = ()
    services: tuple[Replica, ...] = ()
    # Names resolve before pods are ready, or no longer.
    patched_services: tuple[Service, ...] = ()
    pods: tuple[Replica, ...] = ()
    # Deleted pods that only Kueue's finalizer keeps, while their replacements need the names.
    kueue_held_pods: tuple[Pod, ...] = ()
    # Gated until the others run, which is now the case.
    ungated_pods: tuple[Pod, ...] = ()
    dependents: DependentChanges = attrs.field(factory=DependentChanges)
    # The action on the batch/v1 Job that the launcher's pod belongs to.
    launcher_job: LauncherJobWrite | None = None
    # Patches a PodGroup to make the scheduler retry the gang.
    gang_retry: GangRetry = attrs.field(factory=GangRetry)
    # Of an elastic job: its scalers are updated and its exec tasks run accordingly; None leaves
    # both alone.
    membership_plan: MembershipPlan | None = None
    # True if the status may lack what was observed, which a later plan decides about.
    is_unfinished: bool = False
    # True if changes remain for later plans: see ``planning.slices``.
    has_more: bool = False
    # True if the TTL of the finished job has expired.
    ttl_expired: bool = False
    # Seconds until the next plan is needed without any change in the cluster.
    requeue_after_s: float | None = None
    # True to plan again after a growing back-off instead, as after an error.
    requeue: bool = False

    @property
    def has_writes(self) -> bool:
        """Return whether any children are created or updated."""
        dependents = self.dependents.created or self.dependents.patched
        children = self.pods or self.services or self.patched_services or self.ungated_pods
        return bool(children or dependents or (self.launcher_job and not self.deleted_launcher_job))

    @property
    def has_creations(self) -> bool:
        """Return whether any children are created."""
        return bool(self.needs_secrets or self.services or self.dependents.created)

    @property
    def needs_secrets(self) -> bool:
        """Return whether pods may be created, or a Job that creates some."""
        creates_job = self.launcher_job is not None and self.launcher_job.action.creates
        return bool(self.pods or self.dry_runs) or creates_job

    @property
    def deleted_launcher_job(self) -> BatchJob | None:
        """Return the launcher's Job that is deleted, if it is."""
        write = self.launcher_job
        return write.existing if write and write.action is LauncherJobAction.DELETE else None

    def reduced_to(self, replicas: Collection[Replica]) -> Self:
        """Return the plan without the creation of other pods and services, and of launchers."""
        services = tuple(replica for replica in self.services if replica in replicas)
        return attrs.evolve(self, services=services, pods=tuple(replicas), launcher_job=None)

    def deletions(self, resource: Resource) -> Iterator[Object]:
        """Yield all deleted pods, services or Jobs."""
        if resource == BATCH_JOBS:
            yield from filter(None, [self.deleted_launcher_job])
            return
        yield from self.deleted_pods if resource == PODS else self.deleted_services
        for collection in self.deleted_collections:
            yield from collection.children if collection.resource == resource else ()


def with_membership_plan(plan: Plan, membership_plan: MembershipPlan | None) -> Plan:
    """Return a plan extended by the membership changes of an elastic job."""
    if membership_plan is None:
        return plan
    return attrs.evolve(
        plan,
        action_notes=(*membership_plan.notes, *plan.action_notes),
        deleted_pods=(*plan.deleted_pods, *membership_plan.deleted_pods),
        membership_plan=membership_plan,
        requeue_after_s=shortest_wait(plan.requeue_after_s, membership_plan.requeue_after_s),
    )

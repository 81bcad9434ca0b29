"""Builds the controllers of all kinds: their queues, reconcilers and event handlers.

Nothing runs yet: ``manager`` does that.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.nodes import NODES, Node
from dlctl.api.objects.scalers import ScalerObject
from dlctl.clock import Clock
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.controller.controller import Controller
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.controller.object_writer import ObjectWriter
from dlctl.controller.queue_metrics import QueueMetrics
from dlctl.controller.runnables import Runnable
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.dialects.kind import Kind
from dlctl.informers.informer import Informer
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.reconciler_settings import membership_settings, plan_settings
from dlctl.reconcilers.applying.child_writer import ChildWriter
from dlctl.reconcilers.applying.executor import Executor
from dlctl.reconcilers.avoidance.node_avoidance import NodeAvoidance
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.events.job_events import JobEvents
from dlctl.reconcilers.events.malformed_objects import MalformedObjects
from dlctl.reconcilers.failures.failure_logs import MAX_CONCURRENT_READS, FailureLogs
from dlctl.reconcilers.failures.log_tails import LogTailReader
from dlctl.reconcilers.failures.tail_cache import TailCache
from dlctl.reconcilers.handlers import event_handlers
from dlctl.reconcilers.job.content_error_log import ContentErrorLog
from dlctl.reconcilers.job.crd_check import CRDCheck
from dlctl.reconcilers.job.decoder import JobDecoder
from dlctl.reconcilers.job.metrics import JobMetrics
from dlctl.reconcilers.job.status_guard import StatusGuard
from dlctl.reconcilers.job.stores import JobStores
from dlctl.reconcilers.job.writer import JobWriter
from dlctl.reconcilers.job_planner import JobPlanner
from dlctl.reconcilers.job_reconciler import JobReconciler
from dlctl.reconcilers.kueue.queue_positions import QueuePositions
from dlctl.reconcilers.kueue.workload_handlers import jobs_of_workload
from dlctl.reconcilers.large_jobs.slots import LargeJobSlots, SharedSlots
from dlctl.reconcilers.membership.exec_runner import ExecLimiter, ExecRunner, exec_limiter
from dlctl.reconcilers.membership.manager import MembershipManager
from dlctl.reconcilers.membership.scaler_index import BY_JOB, index_by_job, read_scaler
from dlctl.reconcilers.membership.scaler_reconciler import ScalerReconciler
from dlctl.reconcilers.nodes.charge_ledger import ChargeLedger
from dlctl.reconcilers.nodes.node_tainter import NodeTainter, enqueue_tainted
from dlctl.reconcilers.recreation_backoff import RecreationBackoff
from dlctl.shared_informers import SharedInformers
from dlctl.workqueue.queue import WorkQueue

H = TypeVar("H")


@attrs.define(eq=False)
class ControllerBuilder:
    """The controllers of a process, one for each kind of job and scaler, and what they share."""

    client: Client
    options: Options
    metrics: Metrics
    clock: Clock
    informers: SharedInformers = attrs.field(init=False)
    controllers: list[Controller[ObjectKey]] = attrs.field(init=False, factory=list)
    crd_checks: list[CRDCheck] = attrs.field(init=False, factory=list)
    runnables: list[Runnable] = attrs.field(init=False, factory=list)
    recorder: EventRecorder = attrs.field(init=False)
    _writer: ObjectWriter = attrs.field(init=False)
    _charges: ChargeLedger = attrs.field(init=False)
    _log_reads: FairSemaphore = attrs.field(
        init=False, factory=partial(FairSemaphore, MAX_CONCURRENT_READS)
    )
    _slots: SharedSlots = attrs.field(init=False, factory=SharedSlots)
    _exec_limiter: ExecLimiter = attrs.field(init=False)
    _log_tails: TailCache = attrs.field(init=False, factory=TailCache)
    _queue_positions: Mapping[ObjectKey, str] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.informers = SharedInformers(self.client, self.options, self.metrics, self.clock)
        self.recorder = EventRecorder(self.client, clock=self.clock, metrics=self.metrics)
        limiter = self.client.write_limiter
        self.metrics.dlctl_write_limit.set_function(lambda: limiter.limit)
        self.metrics.dlctl_writes_waiting.set_function(lambda: limiter.waiting_count)
        self._writer = ObjectWriter(self.client, Expectations(self.clock))
        self._exec_limiter = exec_limiter(
            self.options.max_concurrent_scaler_scripts, self.options.max_concurrent_launcher_execs
        )
        self._charges = ChargeLedger(self.options.node_charge_ttl_s, self.clock, self.metrics)
        self.informers.handler_registrations.append(self._charges.start_reporting)
        charges = self._charges
        self.metrics.dlctl_avoided_nodes.set_function(
            lambda: len(charges.avoided()) if charges.is_reporting else 0
        )
        if self.options.taint_charged_nodes and self.informers.nodes:
            self._add_node_tainter(self.informers.nodes)
        if self.options.kueue_positions:
            self._add_queue_positions()

    def _add_node_tainter(self, nodes: Informer[Node]) -> None:
        queue = self._queue(NODES.group_resource)
        self._charges.on_change.append(lambda node: queue.add(ObjectKey("", node)))
        self._register(nodes.add_handler, enqueue_tainted(queue))
        tainter = NodeTainter(
            self.client,
            self._charges,
            self.informers.node_tracker,
            self.options.max_avoided_nodes,
            self.informers.all_synced,
        )
        self.controllers.append(
            Controller(NODES.group_resource, queue, tainter.reconcile, self.metrics)
        )

    def _add_queue_positions(self) -> None:
        informers = self.informers
        jobs = partial(jobs_of_workload, informers.queues, informers.pods.store)
        positions = QueuePositions(self.client, informers.workloads.store, jobs)
        self._queue_positions = positions.by_workload
        self.runnables.append(positions)

    def _register(self, add_handler: Callable[[H], object], handler: H) -> None:
        """Add a handler once this process leads; before, nothing would take keys from queues."""
        self.informers.handler_registrations.append(partial(add_handler, handler))

    def add_kind(self, kind: Kind) -> None:
        """Build the controllers of one kind and of its scalers."""
        name = kind.resource.group_resource
        queue = self._queue(name)
        self.informers.queues.add(kind.resource, queue)
        jobs = self._job_informer(kind, queue)
        children = self._child_informers(kind)
        membership, scalers = self._membership(kind, queue, jobs)
        self.runnables.append(membership.tasks)
        stores = self._stores(kind, jobs, membership)
        reconciler = self._reconciler(kind, stores, membership, queue)
        # Nodes need not be known, but what is known of them decides about failures.
        waits = [nodes.wait_caught_up] if (nodes := self.informers.nodes) else []
        controller = Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            timeout_s=self.options.reconcile_timeout_s,
            wait_synced=[*waits, *(one.wait_synced for one in (jobs, *children, *scalers))],
        )
        self.controllers.append(controller)

    def _queue(self, name: str) -> WorkQueue[ObjectKey]:
        metrics = QueueMetrics(self.metrics, name)
        return WorkQueue(metrics=metrics, tenant_of=attrgetter("namespace"))

    def _job_informer(self, kind: Kind, queue: WorkQueue[ObjectKey]) -> Informer[JobObject]:
        jobs: Informer[JobObject] = self.informers.add(kind.resource, kind.object_type)
        self._register(jobs.add_handler, event_handlers.enqueue_job(queue))
        # Also before this process leads: a job may be deleted until then.
        jobs.add_handler(self._charges.handle)
        malformed = MalformedObjects(kind.resource, self.recorder)
        self._register(jobs.add_malformed_handler, malformed.handle_job)
        return jobs

    def _child_informers(self, kind: Kind) -> list[Informer[Any]]:
        """Return the informers of the resources in which jobs of a kind have children."""
        informers = self.informers
        children: list[Informer[Any]] = [informers.pods, informers.services]
        children += map(informers.dependents, kind.dependent_resources)
        if kind.creates_launcher_jobs:
            children.append(informers.launcher_jobs())
        malformed = MalformedObjects(kind.resource, self.recorder)
        for child in children:
            handler = partial(malformed.handle_child, child.resource)
            self._register(child.add_malformed_handler, handler)
        return children

    def _stores(
        self, kind: Kind, jobs: Informer[JobObject], membership: MembershipManager
    ) -> JobStores:
        informers = self.informers
        launchers = informers.launcher_jobs().store if kind.creates_launcher_jobs else Store()
        return JobStores(
            resource=kind.resource,
            jobs=jobs.store,
            pods=informers.pods.store,
            terminated_pods=informers.terminated_pods,
            services=informers.services.store,
            dependents={r: informers.dependents(r).store for r in kind.dependent_resources},
            scalers=membership.scaler_stores,
            expectations=self._writer.expectations,
            launcher_jobs=launchers,
            nodes=informers.node_tracker,
            workloads=informers.workloads.store,
            queue_positions=self._queue_positions,
        )

    def _reconciler(
        self,
        kind: Kind,
        stores: JobStores,
        membership: MembershipManager,
        queue: WorkQueue[ObjectKey],
    ) -> JobReconciler:
        crd = CRDCheck(kind.resource, self.metrics, self.clock)
        self.crd_checks.append(crd)
        recreations = RecreationBackoff(self.clock)
        name = kind.resource.group_resource
        job_writer = JobWriter(kind, self._writer, crd)
        events = JobEvents(kind.resource, self.recorder, self.options.per_child_events)
        metrics = JobMetrics(self.metrics, name, self.clock, kind.metric_label)
        errors = ContentErrorLog(self.metrics, name)
        executor = Executor(
            job_writer=job_writer,
            child_writer=ChildWriter(self._writer),
            membership=membership,
            events=events,
            metrics=metrics,
            content_errors=errors,
            recreations=recreations,
            clock=self.clock,
        )
        planner = JobPlanner(
            stores=stores,
            membership=membership,
            crd=crd,
            metrics=metrics,
            content_errors=errors,
            clock=self.clock,
            settings=plan_settings(self.options),
            avoidance=self._avoidance,
            recreations=recreations,
            failure_logs=self._failure_logs(kind, queue),
        )
        return JobReconciler(
            kind=kind,
            stores=stores,
            guard=StatusGuard(crd, job_writer, stores.jobs, events, metrics, self.clock),
            adopter=Adopter(self._writer, self.clock, kind.adopted_resources),
            planner=planner,
            executor=executor,
            decoder=JobDecoder(kind, job_writer.refetch),
            slots_for_replicas=LargeJobSlots(self._slots.for_replicas, queue.add),
            slots_for_specs=LargeJobSlots(self._slots.for_specs, queue.add),
            metrics=metrics,
            content_errors=errors,
        )

    def _failure_logs(self, kind: Kind, queue: WorkQueue[ObjectKey]) -> FailureLogs | None:
        if not self.options.failure_log_tails:
            return None
        tasks = BackgroundTasks(
            LogTailReader(self.client, self._log_tails).read,
            queue.add,
            controller=kind.resource.group_resource,
            limiter=lambda owner, _: self._log_reads.slot(owner.namespace),
        )
        self.runnables.append(tasks)
        return FailureLogs(tasks, self.options.failure_log_tails, self.clock, self._log_tails)

    @property
    def _avoidance(self) -> NodeAvoidance:
        # Without knowing the nodes, all of them might be excluded.
        max_count = 0 if self.options.namespace else self.options.max_avoided_nodes
        return NodeAvoidance(self._charges, self.informers.node_tracker, max_count)

    def _membership(
        self, kind: Kind, queue: WorkQueue[ObjectKey], jobs: Informer[JobObject]
    ) -> tuple[MembershipManager, list[Informer[Any]]]:
        """Return the membership manager of a kind that scales, and the informers it reads."""
        scalers = self._scaler_informers(kind, kind.elastic, queue, jobs) if kind.elastic else {}
        membership = MembershipManager(
            dialect=kind.elastic,
            scaler_stores={resource: informer.store for resource, informer in scalers.items()},
            tasks=BackgroundTasks(
                ExecRunner(self.client, self.clock).exec,
                queue.add,
                controller=kind.resource.group_resource,
                limiter=self._exec_limiter,
            ),
            writer=self._writer,
            recorder=self.recorder,
            settings=membership_settings(self.options),
            nodes=self.informers.node_tracker,
        )
        return membership, list(scalers.values())

    def _scaler_informers(
        self,
        kind: Kind,
        dialect: ElasticDialect,
        queue: WorkQueue[ObjectKey],
        jobs: Informer[JobObject],
    ) -> dict[Resource, Informer[ScalerObject]]:
        """Return the informers of the scalers of jobs, by resource, and build their controllers."""
        informers = {r: self.informers.add(r, ScalerObject) for r in dialect.scaler_resources}
        for resource, informer in informers.items():
            read = partial(read_scaler, dialect, resource)
            informer.store.add_index(BY_JOB, partial(index_by_job, read))
            self._register(informer.add_handler, event_handlers.enqueue_scale_target(read, queue))
            self.controllers.append(
                self._scaler_controller(kind, dialect, resource, informer, jobs)
            )
        return informers

    def _scaler_controller(
        self,
        kind: Kind,
        dialect: ElasticDialect,
        resource: Resource,
        scalers: Informer[ScalerObject],
        jobs: Informer[JobObject],
    ) -> Controller[ObjectKey]:
        """Return the controller of the scalers of one kind whose job does not exist."""
        name = resource.group_resource
        queue = self._queue(name)
        self._register(scalers.add_handler, event_handlers.enqueue_job(queue))
        reconciler = ScalerReconciler(
            dialect=dialect,
            resource=resource,
            scalers=scalers.store,
            job_kind=kind.resource.kind,
            jobs=jobs.store,
            client=self.client,
            recorder=self.recorder,
            clock=self.clock,
            ttl_s=self.options.scaler_ttl_s,
        )
        return Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            timeout_s=self.options.reconcile_timeout_s,
            wait_synced=[jobs.wait_synced, scalers.wait_synced],
        )

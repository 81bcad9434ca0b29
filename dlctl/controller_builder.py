"""Builds the controllers of all kinds: their informers, queues, reconcilers and event handlers.

Nothing runs yet: ``manager`` does that.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from dlctl.api.batch_jobs import BatchJob
from dlctl.api.dependents import DependentObject
from dlctl.api.elastic import ScalerObject
from dlctl.api.job import JobObject
from dlctl.api.meta import (
    BATCH_JOBS,
    MANAGED_BY_SELECTOR,
    PODS,
    SERVICES,
    UID,
    ObjectKey,
    ObjectMeta,
    Resource,
)
from dlctl.api.node_signals import NodeSignals
from dlctl.api.nodes import NODES, Node
from dlctl.api.pods import Pod, Service
from dlctl.api.workloads import WORKLOAD_VERSIONS, WORKLOADS, Workload
from dlctl.backoff import Backoff
from dlctl.clock import Clock
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.controller.object_writer import ObjectWriter
from dlctl.controller.queue_metrics import QueueMetrics
from dlctl.controller.worker_loop import Controller
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.dialects.kind import Kind
from dlctl.informers.discovered_informer import DiscoveredInformer
from dlctl.informers.informer import Informer
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.kube.decoding import Malformed
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.reconcilers import event_handlers
from dlctl.reconcilers.avoidance.node_avoidance import NodeAvoidance
from dlctl.reconcilers.child_writer import ChildWriter
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.content_error_log import ContentErrorLog
from dlctl.reconcilers.crd_check import CRDCheck
from dlctl.reconcilers.events.job_events import JobEvents
from dlctl.reconcilers.executor import Executor
from dlctl.reconcilers.failures.failure_logs import MAX_CONCURRENT_READS, FailureLogs
from dlctl.reconcilers.failures.log_tails import LogTailReader
from dlctl.reconcilers.failures.tail_cache import TailCache
from dlctl.reconcilers.job_metrics import JobMetrics
from dlctl.reconcilers.job_reconciler import JobReconciler
from dlctl.reconcilers.job_stores import BY_OWNER, JobStores, index_by_owner
from dlctl.reconcilers.job_writer import JobWriter
from dlctl.reconcilers.membership.exec_runner import ExecRunner, exec_limiter
from dlctl.reconcilers.membership.membership_state import MembershipPolicy
from dlctl.reconcilers.membership.reconciler import (
    BY_JOB,
    MembershipReconciler,
    index_by_job,
)
from dlctl.reconcilers.membership.scaler_reconciler import ScalerReconciler, read_scaler
from dlctl.reconcilers.nodes.charge_ledger import ChargeLedger
from dlctl.reconcilers.nodes.node_tainter import NodeTainter, enqueue_tainted
from dlctl.reconcilers.nodes.node_watch import NodeWatch
from dlctl.reconcilers.plan_job import Policy
from dlctl.reconcilers.status_guard import StatusGuard
from dlctl.reconcilers.workload_handlers import enqueue_queued_job
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

# An informer waits until its CRD is installed, and the workers of that kind wait for the informer.
SYNC_TIMEOUT_S: Final = float("inf")


@attrs.define(eq=False)
class ControllerBuilder:
    """The parts of a controller process; the kinds share the informers of pods and services."""

    client: Client
    options: Options
    metrics: Metrics
    clock: Clock
    informers: list[Informer[Any]] = attrs.field(init=False, factory=list)
    # Nothing waits for them: the controller may lack the right to list what they watch, or the
    # cluster may not serve it.
    optional_informers: list[Informer[Any] | DiscoveredInformer[Any]] = attrs.field(
        init=False, factory=list
    )
    controllers: list[Controller[ObjectKey]] = attrs.field(init=False, factory=list)
    # Run once this process leads: each registers an event handler.
    handler_registrations: list[Callable[[], object]] = attrs.field(init=False, factory=list)
    crd_checks: list[CRDCheck] = attrs.field(init=False, factory=list)
    background_tasks: list[BackgroundTasks[ObjectKey, Any]] = attrs.field(init=False, factory=list)
    recorder: EventRecorder = attrs.field(init=False)
    # By the group and kind of the jobs.
    _queues: dict[tuple[str, str], WorkQueue[ObjectKey]] = attrs.field(init=False, factory=dict)
    _writer: ObjectWriter = attrs.field(init=False)
    _pods: Informer[Pod] = attrs.field(init=False)
    _services: Informer[Service] = attrs.field(init=False)
    _workloads: DiscoveredInformer[Workload] = attrs.field(init=False)
    # Without nodes if the controller serves one namespace.
    _nodes: NodeWatch = attrs.field(init=False)
    _charges: ChargeLedger = attrs.field(init=False)
    _log_reads: FairSemaphore = attrs.field(
        init=False, factory=partial(FairSemaphore, MAX_CONCURRENT_READS)
    )
    _log_tails: TailCache = attrs.field(init=False, factory=TailCache)
    _dependent_informers: dict[Resource, Informer[DependentObject]] = attrs.field(
        init=False, factory=dict
    )
    # Not watched unless a kind has launchers that are pods of Jobs.
    _launcher_jobs: Informer[BatchJob] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.recorder = EventRecorder(self.client, clock=self.clock, metrics=self.metrics)
        limiter = self.client.write_limiter
        self.metrics.dlctl_write_limit.set_function(lambda: limiter.limit)
        self.metrics.dlctl_writes_waiting.set_function(lambda: limiter.waiting_count)
        self._writer = ObjectWriter(self.client, Expectations(self.clock))
        self._pods = self._child_informer(PODS, Pod)
        event_handlers.add_indexes(self._pods.store)
        self._services = self._child_informer(SERVICES, Service)
        self._nodes = NodeWatch(
            NodeSignals.of(
                going=self.options.node_drain_signals, sick=self.options.node_fault_signals
            )
        )
        self._charges = ChargeLedger(self.options.node_charge_ttl_s, self.clock, self.metrics)
        charges = self._charges
        self.metrics.dlctl_avoided_nodes.set_function(lambda: len(charges.lemons()))
        self._watch_nodes()
        self._workloads = DiscoveredInformer(
            self.client,
            WORKLOADS,
            WORKLOAD_VERSIONS,
            Workload,
            namespace=self.options.namespace,
            clock=self.clock,
            metrics=self.metrics,
        )
        self._workloads.store.add_index(BY_OWNER, index_by_owner)
        self.optional_informers.append(self._workloads)
        self.handler_registrations.append(
            lambda: self._workloads.add_handler(enqueue_queued_job(self._queues, self._pods.store))
        )

    def _watch_nodes(self) -> None:
        if self.options.namespace:
            logger.info("nodes are not watched, since the controller serves one namespace")
            return
        nodes: Informer[Node] = Informer(
            self.client, NODES, Node, clock=self.clock, metrics=self.metrics
        )
        self.optional_informers.append(nodes)
        self._nodes.is_synced = lambda: nodes.has_synced
        self.handler_registrations.append(partial(self._enqueue_jobs_on_nodes, nodes))
        if self.options.taint_charged_nodes:
            self._add_node_tainter(nodes)

    def _add_node_tainter(self, nodes: Informer[Node]) -> None:
        queue: WorkQueue[ObjectKey] = WorkQueue(
            metrics=QueueMetrics(self.metrics, NODES.group_resource)
        )
        self._charges.on_change.append(lambda node: queue.add(ObjectKey("", node)))
        self.handler_registrations.append(partial(nodes.add_handler, enqueue_tainted(queue)))
        tainter = NodeTainter(
            self.client,
            self._charges,
            self._nodes,
            self.options.max_avoided_nodes,
            lambda: all(informer.is_synced_or_unserved() for informer in self.informers),
        )
        self.controllers.append(
            Controller(NODES.group_resource, queue, tainter.reconcile, self.metrics)
        )

    def _enqueue_jobs_on_nodes(self, nodes: Informer[Node]) -> None:
        launcher_jobs = self._launcher_jobs.store if self._launcher_jobs else Store[BatchJob]()
        nodes.add_handler(
            event_handlers.enqueue_jobs_on_node(
                self._queues, self._pods.store, launcher_jobs, self._nodes
            )
        )

    def _record_malformed(self, resource: Resource, obj: Malformed) -> None:
        if obj.key is None or not obj.uid:
            return
        metadata = ObjectMeta(name=obj.key.name, namespace=obj.key.namespace, uid=UID(obj.uid))
        message = f"The {resource.kind} cannot be decoded and is ignored: {obj.error}"
        self.recorder.record(resource, metadata, "Warning", "Malformed", message)

    def _informer(self, resource: Any, as_: Any, selector: str = "") -> Informer[Any]:
        informer: Informer[Any] = Informer(
            self.client,
            resource,
            as_,
            namespace=self.options.namespace,
            label_selector=selector,
            clock=self.clock,
            metrics=self.metrics,
        )
        self.informers.append(informer)
        return informer

    def _dependent_informer(self, resource: Resource) -> Informer[DependentObject]:
        """Return the informer of a resource in which jobs of several kinds may own objects."""
        if resource not in self._dependent_informers:
            self._dependent_informers[resource] = self._child_informer(resource, DependentObject)
        return self._dependent_informers[resource]

    def _child_informer(self, resource: Resource, as_: Any) -> Informer[Any]:
        """Return an informer that enqueues the owners of changed children, of all kinds."""
        informer = self._informer(resource, as_, MANAGED_BY_SELECTOR)
        self.handler_registrations.append(partial(self._enqueue_owners, informer))
        return informer

    def _enqueue_owners(self, children: Informer[Any]) -> None:
        launcher_jobs = self._launcher_jobs.store if self._launcher_jobs else Store[BatchJob]()
        handler = event_handlers.enqueue_owner(self._queues, self._pods.store, launcher_jobs)
        children.add_handler(handler)

    def add_kind(self, kind: Kind) -> None:
        """Build the controllers of one kind and of its scalers."""
        name = kind.resource.group_resource
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueMetrics(self.metrics, name))
        jobs: Informer[JobObject] = self._informer(kind.resource, kind.object_type)
        # Not before this process leads: nothing would take keys from the queue.
        self.handler_registrations.append(
            partial(jobs.add_handler, event_handlers.enqueue_job(queue))
        )
        self.handler_registrations.append(partial(jobs.add_handler, self._charges.handle))
        malformed = partial(self._record_malformed, kind.resource)
        self.handler_registrations.append(partial(jobs.add_malformed_handler, malformed))
        self._queues[kind.resource.group, kind.resource.kind] = queue
        dependents = {r: self._dependent_informer(r) for r in kind.dependent_resources}
        watched: list[Informer[Any]] = [self._pods, self._services, *dependents.values()]
        launcher_jobs = Store[BatchJob]()
        if kind.creates_launcher_jobs:
            if self._launcher_jobs is None:
                self._launcher_jobs = self._child_informer(BATCH_JOBS, BatchJob)
            watched.append(self._launcher_jobs)
            launcher_jobs = self._launcher_jobs.store
        membership, scalers = self._membership(kind, queue, jobs)
        self.background_tasks.append(membership.tasks)
        stores = JobStores(
            kind.resource,
            jobs.store,
            self._pods.store,
            self._services.store,
            {resource: informer.store for resource, informer in dependents.items()},
            membership.scaler_stores,
            self._writer.expectations,
            launcher_jobs,
            self._nodes,
            self._workloads.store,
        )
        reconciler = self._reconciler(kind, stores, membership, self._failure_logs(queue))
        controller = Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            timeout_s=self.options.reconcile_timeout_s,
            wait_synced=[informer.wait_synced for informer in (jobs, *watched, *scalers)],
            sync_timeout_s=SYNC_TIMEOUT_S,
        )
        self.controllers.append(controller)

    def _reconciler(
        self,
        kind: Kind,
        stores: JobStores,
        membership: MembershipReconciler,
        failure_logs: FailureLogs | None,
    ) -> JobReconciler:
        crd = CRDCheck(kind.resource, self.metrics, self.clock)
        self.crd_checks.append(crd)
        name = kind.resource.group_resource
        writer = JobWriter(kind.resource, self._writer, crd)
        events = JobEvents(kind.resource, self.recorder, self.options.per_child_events)
        metrics = JobMetrics(self.metrics, name, kind.metric_label)
        errors = ContentErrorLog(self.metrics, name)
        executor = Executor(
            writer, ChildWriter(self._writer), membership, events, metrics, errors, self.clock
        )
        return JobReconciler(
            kind,
            stores,
            StatusGuard(crd, writer, events, metrics, self.clock),
            Adopter(self._writer, self.clock, _adopted_resources(kind)),
            membership,
            executor,
            metrics,
            errors,
            self.clock,
            _policy(self.options),
            NodeAvoidance(self._charges, self._nodes, self._max_avoided_nodes),
            failure_logs,
        )

    def _failure_logs(self, queue: WorkQueue[ObjectKey]) -> FailureLogs | None:
        if not self.options.failure_log_tails:
            return None
        reads = self._log_reads
        tasks = BackgroundTasks(
            LogTailReader(self.client, self._log_tails).read,
            queue.add,
            limiter=lambda owner, _: reads.slot(owner.namespace),
        )
        self.background_tasks.append(tasks)
        return FailureLogs(tasks, self.options.failure_log_tails, self.clock, self._log_tails)

    @property
    def _max_avoided_nodes(self) -> int:
        # Without knowing the nodes, all of them might be excluded.
        return 0 if self.options.namespace else self.options.max_avoided_nodes

    def _membership(
        self, kind: Kind, queue: WorkQueue[ObjectKey], jobs: Informer[JobObject]
    ) -> tuple[MembershipReconciler, list[Informer[Any]]]:
        """Return the membership reconciler of a kind that scales, and the informers it reads."""
        options, exec_runner = self.options, ExecRunner(self.client)
        scalers = self._scaler_informers(kind, kind.elastic, queue, jobs) if kind.elastic else {}
        limiter = exec_limiter(
            options.max_concurrent_scaler_scripts, options.max_concurrent_launcher_execs
        )
        membership = MembershipReconciler(
            kind.elastic,
            {resource: informer.store for resource, informer in scalers.items()},
            BackgroundTasks(exec_runner.exec, queue.add, limiter=limiter),
            self._writer,
            self.recorder,
            _membership_policy(options),
            self._nodes,
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
        informers = {r: self._informer(r, ScalerObject) for r in dialect.scaler_resources}
        for resource, informer in informers.items():
            read = partial(read_scaler, dialect, resource)
            informer.store.add_index(BY_JOB, partial(index_by_job, read))
            self.handler_registrations.append(
                partial(informer.add_handler, event_handlers.enqueue_scale_target(read, queue))
            )
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
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueMetrics(self.metrics, name))
        self.handler_registrations.append(
            partial(scalers.add_handler, event_handlers.enqueue_job(queue))
        )
        reconciler = ScalerReconciler(
            dialect,
            resource,
            scalers.store,
            kind.resource.kind,
            jobs.store,
            self.client,
            self.recorder,
            self.clock,
            self.options.scaler_ttl_s,
        )
        return Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            timeout_s=self.options.reconcile_timeout_s,
            wait_synced=[jobs.wait_synced, scalers.wait_synced],
            sync_timeout_s=SYNC_TIMEOUT_S,
        )


def _adopted_resources(kind: Kind) -> list[Resource]:
    """Return the resources of children to adopt, besides pods and services."""
    return [*kind.transient_resources, *([BATCH_JOBS] if kind.creates_launcher_jobs else [])]


def _membership_policy(options: Options) -> MembershipPolicy:
    return MembershipPolicy(
        _policy(options).backoff,
        options.elastic_start_after_s,
        options.scale_in_timeout_s,
        options.scale_out_timeout_s,
    )


def _policy(options: Options) -> Policy:
    backoff = Backoff(
        base_s=options.restart_backoff_s,
        cap_s=options.restart_backoff_cap_s,
        reset_s=options.restart_backoff_reset_s,
    )
    return Policy(
        backoff, options.force_delete_after_s, options.max_infrastructure_restarts_per_hour
    )

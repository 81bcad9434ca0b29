"""Composition root: builds the parts of the controller and owns their lifetimes.

Start: informers first; after leader election, the workers, each kind once its stores are synced.
Stop: workers first, while the informers still run, so that reconciles in progress finish with fresh
stores; then events, the lease, and the informers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

import attrs

from dlctl.api.dependents import DependentObject
from dlctl.api.elastic import ScalerObject
from dlctl.api.job import JobObject
from dlctl.api.meta import MANAGED_BY_SELECTOR, PODS, SERVICES, UID, ObjectKey, ObjectMeta, Resource
from dlctl.api.nodes import NODES, Node
from dlctl.api.pods import Pod, Service
from dlctl.backoff import Backoff
from dlctl.clock import Clock, SystemClock
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.controller.object_writer import ObjectWriter
from dlctl.controller.queue_metrics import QueueMetrics
from dlctl.controller.worker_loop import Controller
from dlctl.dialects.kind import Kind
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.decoding import Malformed
from dlctl.leaderelection.leadership import Leadership, NoLeaderElection
from dlctl.metrics import Metrics, observe_gc_pauses, observe_loop_lag
from dlctl.options import Options
from dlctl.reconcilers import event_handlers
from dlctl.reconcilers.child_writer import ChildWriter
from dlctl.reconcilers.children.adoption import Adopter
from dlctl.reconcilers.crd_check import CRDCheck
from dlctl.reconcilers.executor import Executor
from dlctl.reconcilers.fault_log import FaultLog
from dlctl.reconcilers.job_events import JobEvents
from dlctl.reconcilers.job_metrics import JobMetrics
from dlctl.reconcilers.job_reconciler import JobReconciler
from dlctl.reconcilers.job_writer import JobWriter
from dlctl.reconcilers.membership.exec_runner import ExecRunner
from dlctl.reconcilers.membership.exec_tasks import ExecTask, RunScript
from dlctl.reconcilers.membership.membership_state import MembershipPolicy
from dlctl.reconcilers.membership.reconciler import (
    BY_JOB,
    DRAINING,
    MembershipReconciler,
    index_by_job,
)
from dlctl.reconcilers.membership.scaler_reconciler import ScalerReconciler
from dlctl.reconcilers.plan import Policy
from dlctl.tasks import unwrap_exception_groups
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

# An informer waits until its CRD is installed, and the workers of that kind wait for the informer.
SYNC_TIMEOUT_S: Final = float("inf")


@attrs.define(eq=False)
class Manager:
    """One controller process: all kinds; they share the informers of pods and services."""

    client: Client
    kinds: Iterable[Kind]
    options: Options = attrs.field(factory=Options)
    metrics: Metrics = attrs.field(factory=Metrics)
    clock: Clock = attrs.field(factory=SystemClock)
    leadership: Leadership = attrs.field(factory=NoLeaderElection)
    _informers: list[Informer[Any]] = attrs.field(init=False, factory=list)
    _controllers: list[Controller[ObjectKey]] = attrs.field(init=False, factory=list)
    # Run once this process leads: each registers an event handler.
    _handler_registrations: list[Callable[[], object]] = attrs.field(init=False, factory=list)
    _crd_checks: list[CRDCheck] = attrs.field(init=False, factory=list)
    _background_tasks: list[BackgroundTasks[ObjectKey, ExecTask]] = attrs.field(
        init=False, factory=list
    )
    _recorder: EventRecorder = attrs.field(init=False)
    _writer: ObjectWriter = attrs.field(init=False)
    _pods: Informer[Pod] = attrs.field(init=False)
    _services: Informer[Service] = attrs.field(init=False)
    _dependent_informers: dict[Resource, Informer[DependentObject]] = attrs.field(
        init=False, factory=dict
    )

    def __attrs_post_init__(self) -> None:
        self._recorder = EventRecorder(self.client, clock=self.clock, metrics=self.metrics)
        self._writer = ObjectWriter(self.client, Expectations(self.clock))
        self._pods = self._build_informer(PODS, Pod, MANAGED_BY_SELECTOR)
        self._services = self._build_informer(SERVICES, Service, MANAGED_BY_SELECTOR)
        for kind in self.kinds:
            self._controllers.append(self._build_controller(kind))

    @property
    def synced(self) -> bool:
        """Return whether all readiness checks pass."""
        return all(synced() for synced in self.readiness_checks().values())

    def readiness_checks(self) -> dict[str, Callable[[], bool]]:
        """Return the readiness checks by name: every store, and the CRD of every kind.

        A kind that is not installed does not block readiness of the others.
        """
        stores = {
            informer.resource.group_resource: informer.is_synced_or_unserved
            for informer in self._informers
        }
        definitions = {
            f"definition.{one.resource.group_resource}": one.is_current for one in self._crd_checks
        }
        return {**stores, **definitions}

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, then finish reconciles in progress; cancelling stops at once.

        :raises LeaseLostError: if the lease is lost; reconciles in progress have been cancelled.
        """
        with observe_gc_pauses(self.metrics.dlctl_gc_pause_seconds), unwrap_exception_groups():
            async with asyncio.TaskGroup() as background:
                lag = self.metrics.dlctl_event_loop_lag_seconds
                tasks = [background.create_task(observe_loop_lag(lag), name="loop lag")]
                tasks += [
                    background.create_task(informer.run(), name=f"informer {informer.resource}")
                    for informer in self._informers
                ]
                async with self.leadership.leading(stop) as leading:
                    if leading:
                        await self._run_leader(stop)
                for task in tasks:
                    task.cancel()

    async def _run_leader(self, stop: asyncio.Event) -> None:
        """Run everything that writes until ``stop`` is set; nothing of it is left on return."""
        async with asyncio.TaskGroup() as group:
            recording = group.create_task(self._recorder.run(), name="events")
            tasks = [
                group.create_task(e.run(), name="background tasks") for e in self._background_tasks
            ]
            stopped_at = await self._run_controllers(stop)
            logger.info("workers stopped")
            for task in tasks:
                task.cancel()
            await self._flush_events(recording, stopped_at)

    async def _flush_events(self, recording: asyncio.Task[None], stopped_at: float) -> None:
        """Send the remaining events within the rest of the grace period."""
        self._recorder.close()
        left_s = (
            stopped_at
            + self.options.graceful_shutdown_timeout_s
            - asyncio.get_running_loop().time()
        )
        await asyncio.wait([recording], timeout=max(0.0, left_s))
        recording.cancel()

    async def _run_controllers(self, stop: asyncio.Event) -> float:
        """Reconcile until ``stop`` is set; return the loop time at which that happened."""
        for subscribe in self._handler_registrations:
            subscribe()
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(controller.run(), name=f"controller {controller.name}")
                for controller in self._controllers
            ]
            await stop.wait()
            stopped_at = asyncio.get_running_loop().time()
            logger.info("stopping")
            async with asyncio.TaskGroup() as stopping:
                for controller in self._controllers:
                    stopping.create_task(
                        controller.stop(grace_s=self.options.graceful_shutdown_timeout_s)
                    )
            for task in running:
                # A controller whose stores never synced is still waiting for them.
                task.cancel()
        return stopped_at

    def _record_malformed(self, resource: Resource, obj: Malformed) -> None:
        if obj.key is None or not obj.uid:
            return
        metadata = ObjectMeta(name=obj.key.name, namespace=obj.key.namespace, uid=UID(obj.uid))
        message = f"The {resource.kind} cannot be decoded and is ignored: {obj.error}"
        self._recorder.record(resource, metadata, "Warning", "Malformed", message)

    def _build_informer(self, resource: Any, as_: Any, selector: str = "") -> Informer[Any]:
        informer: Informer[Any] = Informer(
            self.client,
            resource,
            as_,
            namespace=self.options.namespace,
            label_selector=selector,
            clock=self.clock,
            metrics=self.metrics,
        )
        self._informers.append(informer)
        return informer

    def _dependent_informer(self, resource: Resource) -> Informer[DependentObject]:
        """Return the informer of a resource in which jobs of several kinds may own objects."""
        if resource not in self._dependent_informers:
            self._dependent_informers[resource] = self._build_informer(
                resource, DependentObject, MANAGED_BY_SELECTOR
            )
        return self._dependent_informers[resource]

    def _build_controller(self, kind: Kind) -> Controller[ObjectKey]:
        name = kind.resource.group_resource
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueMetrics(self.metrics, name))
        jobs: Informer[JobObject] = self._build_informer(kind.resource, JobObject)
        # Not before this process leads: nothing would take keys from the queue.
        self._handler_registrations.append(
            partial(jobs.add_handler, event_handlers.enqueue_job(queue))
        )
        malformed = partial(self._record_malformed, kind.resource)
        self._handler_registrations.append(partial(jobs.add_malformed_handler, malformed))
        enqueue_owner_of_kind = event_handlers.enqueue_owner(kind.resource, queue)
        dependents = {r: self._dependent_informer(r) for r in kind.dependent_resources}
        watched: list[Informer[Any]] = [self._pods, self._services, *dependents.values()]
        for children in watched:
            self._handler_registrations.append(partial(children.add_handler, enqueue_owner_of_kind))
        membership, scalers = self._build_membership(kind, queue, jobs)
        self._background_tasks.append(membership.tasks)
        transient = frozenset(dependents) - kind.retained_resources
        reconciler = JobReconciler(
            kind,
            jobs.store,
            self._pods.store,
            self._services.store,
            {resource: informer.store for resource, informer in dependents.items()},
            self._build_executor(kind, membership),
            Adopter(self._writer, self.clock, transient),
            self.clock,
            _policy(self.options),
        )
        return Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            workers=self.options.workers,
            timeout_s=self.options.reconcile_timeout_s,
            wait_synced=[informer.wait_synced for informer in (jobs, *watched, *scalers)],
            sync_timeout_s=SYNC_TIMEOUT_S,
        )

    def _build_executor(self, kind: Kind, membership: MembershipReconciler) -> Executor:
        crd = CRDCheck(kind.resource, self.metrics, self.clock)
        self._crd_checks.append(crd)
        name = kind.resource.group_resource
        return Executor(
            JobWriter(kind.resource, self._writer, crd),
            ChildWriter(self._writer),
            membership,
            JobEvents(kind.resource, self._recorder, self.options.per_child_events),
            JobMetrics(self.metrics, name, kind.metric_label),
            FaultLog(self.metrics, name),
            self.clock,
        )

    def _build_membership(
        self, kind: Kind, queue: WorkQueue[ObjectKey], jobs: Informer[JobObject]
    ) -> tuple[MembershipReconciler, list[Informer[Any]]]:
        """Return the membership reconciler of a kind that scales, and the informers it reads."""
        options, exec_runner = self.options, ExecRunner(self.client)
        scalers = {r: self._build_informer(r, ScalerObject) for r in kind.scalers}
        for resource, informer in scalers.items():
            informer.store.add_index(BY_JOB, index_by_job)
            self._handler_registrations.append(
                partial(informer.add_handler, event_handlers.enqueue_scale_target(queue))
            )
            self._controllers.append(self._build_scaler_controller(resource, informer, kind, jobs))
        watched: list[Informer[Any]] = list(scalers.values())
        nodes: Informer[Node] | None = None
        if scalers and options.node_drain_signals and not options.namespace:
            nodes = Informer(self.client, NODES, Node, clock=self.clock, metrics=self.metrics)
            drain_signals = frozenset(options.node_drain_signals)
            nodes.store.add_index(
                DRAINING, lambda node: (DRAINING,) if node.has_drain_signal(drain_signals) else ()
            )
            self._informers.append(nodes)
            handler = event_handlers.enqueue_jobs_on_node(
                kind.resource, self._pods.store, options.node_drain_signals, queue
            )
            self._handler_registrations.append(partial(nodes.add_handler, handler))
            watched.append(nodes)
        membership = MembershipReconciler(
            {resource: informer.store for resource, informer in scalers.items()},
            BackgroundTasks(exec_runner.exec, queue.add, limiter=_exec_limiter(options)),
            self._writer,
            self._recorder,
            self.clock,
            _membership_policy(options),
            nodes.store if nodes else None,
        )
        return membership, watched

    def _build_scaler_controller(
        self,
        resource: Resource,
        scalers: Informer[ScalerObject],
        kind: Kind,
        jobs: Informer[JobObject],
    ) -> Controller[ObjectKey]:
        """Return the controller of the scalers of one kind whose job does not exist."""
        name = resource.group_resource
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueMetrics(self.metrics, name))
        self._handler_registrations.append(
            partial(scalers.add_handler, event_handlers.enqueue_job(queue))
        )
        reconciler = ScalerReconciler(
            resource,
            scalers.store,
            kind.resource.kind,
            jobs.store,
            self.client,
            self._recorder,
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


def _exec_limiter(
    options: Options,
) -> Callable[[ObjectKey, ExecTask], AbstractAsyncContextManager[None]]:
    """Return the limiter of background tasks: scaler scripts have slots of their own."""
    scripts = FairSemaphore(options.max_concurrent_scaler_scripts)
    others = FairSemaphore(options.max_concurrent_launcher_execs)

    def slot(owner: ObjectKey, task: ExecTask) -> AbstractAsyncContextManager[None]:
        return (scripts if isinstance(task, RunScript) else others).slot(owner.namespace)

    return slot


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
    return Policy(backoff, options.force_delete_after_s)

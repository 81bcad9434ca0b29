"""The composition root: builds every part of the controller and owns their lives.

Start: informers, then, when leading, workers once what they read is there. Stop: workers first,
so that what they have begun is finished while their view still moves, then events, then the lease
is given back, then informers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

import attrs

from dlctl.api.companions import CompanionObject
from dlctl.api.elastic import ScalerObject
from dlctl.api.job import JobObject
from dlctl.api.meta import MANAGED_SELECTOR, PODS, SERVICES, UID, ObjectKey, ObjectMeta, Resource
from dlctl.api.nodes import NODES, Node
from dlctl.api.pods import Pod, Service
from dlctl.clock import Clock, SystemClock
from dlctl.dialects.kinds import Kind
from dlctl.informers.informer import Informer
from dlctl.kube.client import Client
from dlctl.kube.decoding import Malformed
from dlctl.leaderelection.leadership import Leadership, Unelected
from dlctl.metrics import Metrics, gc_pauses, observe_loop_lag
from dlctl.options import Options
from dlctl.reconcilers import triggers
from dlctl.reconcilers.controller import Controller
from dlctl.reconcilers.definitions import DefinitionCheck
from dlctl.reconcilers.elastic.elastic import BY_JOB, GOING, Elastic, by_job
from dlctl.reconcilers.elastic.errands import Errand, RunScript
from dlctl.reconcilers.elastic.launchers import Launchers
from dlctl.reconcilers.elastic.requests import ScalerReconciler
from dlctl.reconcilers.elastic.view import ElasticPolicy
from dlctl.reconcilers.errands import Errands
from dlctl.reconcilers.events import EventRecorder
from dlctl.reconcilers.execute import Executor
from dlctl.reconcilers.expectations import Expectations
from dlctl.reconcilers.job_metrics import JobFigures
from dlctl.reconcilers.jobs import JobReconciler
from dlctl.reconcilers.plan import Policy
from dlctl.reconcilers.queue_metrics import QueueFigures
from dlctl.reconcilers.restarts import RestartBackoff
from dlctl.reconcilers.slots import FairSlots
from dlctl.tasks import unwrapped
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

# Where a CRD is missing, its informer waits for it; the kind's workers wait for the informer.
SYNC_TIMEOUT_S: Final = float("inf")


@attrs.define(eq=False)
class Manager:
    """One controller process: all kinds, sharing the informers of pods and services."""

    client: Client
    kinds: Iterable[Kind]
    options: Options = attrs.field(factory=Options)
    metrics: Metrics = attrs.field(factory=Metrics)
    clock: Clock = attrs.field(factory=SystemClock)
    leadership: Leadership = attrs.field(factory=Unelected)
    _informers: list[Informer[Any]] = attrs.field(init=False, factory=list)
    _controllers: list[Controller[ObjectKey]] = attrs.field(init=False, factory=list)
    # What has handlers told of changes, once there is somebody to act on them.
    _subscriptions: list[Callable[[], object]] = attrs.field(init=False, factory=list)
    _definitions: list[DefinitionCheck] = attrs.field(init=False, factory=list)
    _errands: list[Errands[ObjectKey, Errand]] = attrs.field(init=False, factory=list)
    _recorder: EventRecorder = attrs.field(init=False)
    _executor: Executor = attrs.field(init=False)
    _pods: Informer[Pod] = attrs.field(init=False)
    _services: Informer[Service] = attrs.field(init=False)
    _companions: dict[Resource, Informer[CompanionObject]] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._recorder = EventRecorder(self.client, clock=self.clock, metrics=self.metrics)
        self._executor = Executor(self.client, Expectations(self.clock), self._recorder)
        self._pods = self._informer(PODS, Pod, MANAGED_SELECTOR)
        self._services = self._informer(SERVICES, Service, MANAGED_SELECTOR)
        for kind in self.kinds:
            self._controllers.append(self._controller(kind))

    @property
    def synced(self) -> bool:
        """Tell whether every store has been filled: what readiness means here."""
        return all(synced() for synced in self.checks().values())

    def checks(self) -> dict[str, Callable[[], bool]]:
        """Return the conditions of readiness by name: the stores, and the definitions of kinds.

        A kind that is not installed keeps nobody from working on the others.
        """
        stores = {
            informer.resource.qualified: partial(getattr, informer, "waits_for_nothing")
            for informer in self._informers
        }
        definitions = {
            f"definition.{one.resource.qualified}": one.is_current for one in self._definitions
        }
        return {**stores, **definitions}

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop, then finish what is in work; cancelling stops at once.

        :raises LeaseLostError: if another may lead now; what was in work has been cancelled.
        """
        with gc_pauses(self.metrics.dlctl_gc_pause_seconds), unwrapped():
            async with asyncio.TaskGroup() as background:
                lag = self.metrics.dlctl_event_loop_lag_seconds
                tasks = [background.create_task(observe_loop_lag(lag), name="loop lag")]
                tasks += [
                    background.create_task(informer.run(), name=f"informer {informer.resource}")
                    for informer in self._informers
                ]
                async with self.leadership.held(stop) as leading:
                    if leading:
                        await self._lead(stop)
                for task in tasks:
                    task.cancel()

    async def _lead(self, stop: asyncio.Event) -> None:
        """Do all that writes, until told to stop; when this returns, nothing of it goes on."""
        async with asyncio.TaskGroup() as group:
            recording = group.create_task(self._recorder.run(), name="events")
            errands = [group.create_task(e.run(), name="errands") for e in self._errands]
            stopped_at = await self._work(stop)
            logger.info("workers stopped")
            for task in errands:
                task.cancel()
            await self._record_the_rest(recording, stopped_at)

    async def _record_the_rest(self, recording: asyncio.Task[None], stopped_at: float) -> None:
        """Send the events that are left, in what is left of the grace period."""
        self._recorder.close()
        left_s = stopped_at + self.options.grace_s - asyncio.get_running_loop().time()
        await asyncio.wait([recording], timeout=max(0.0, left_s))
        recording.cancel()

    async def _work(self, stop: asyncio.Event) -> float:
        """Reconcile until told to stop, and return when that was, by the time of the loop."""
        for subscribe in self._subscriptions:
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
                    stopping.create_task(controller.stop(grace_s=self.options.grace_s))
            for task in running:
                # Those whose stores never filled are still waiting for them.
                task.cancel()
        return stopped_at

    def _record_malformed(self, resource: Resource, obj: Malformed) -> None:
        if obj.key is None or not obj.uid:
            return
        metadata = ObjectMeta(name=obj.key.name, namespace=obj.key.namespace, uid=UID(obj.uid))
        message = f"The {resource.kind} cannot be read, so nothing is done for it: {obj.error}"
        self._recorder.record(resource, metadata, "Warning", "Malformed", message)

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
        self._informers.append(informer)
        return informer

    def _companion(self, resource: Resource) -> Informer[CompanionObject]:
        """Return the informer of a resource that jobs of several kinds may have objects of."""
        if resource not in self._companions:
            self._companions[resource] = self._informer(resource, CompanionObject, MANAGED_SELECTOR)
        return self._companions[resource]

    def _controller(self, kind: Kind) -> Controller[ObjectKey]:
        name = kind.resource.qualified
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueFigures(self.metrics, name))
        jobs: Informer[JobObject] = self._informer(kind.resource, JobObject)
        # While another process leads, nobody would take from the queue what is put into it.
        self._subscriptions.append(partial(jobs.add_handler, triggers.of_jobs(queue)))
        malformed = partial(self._record_malformed, kind.resource)
        self._subscriptions.append(partial(jobs.add_malformed_handler, malformed))
        of_children = triggers.of_children(kind.resource, queue)
        companions = {r: self._companion(r) for r in kind.companion_resources}
        watched: list[Informer[Any]] = [self._pods, self._services, *companions.values()]
        for children in watched:
            self._subscriptions.append(partial(children.add_handler, of_children))
        options = self.options
        elastic: Elastic | None = None
        scalers: list[Informer[Any]] = []
        if kind.scalers:
            elastic, scalers = self._elastic(kind, queue, jobs)
            self._errands.append(elastic.errands)
        definition = DefinitionCheck(kind.resource, self.metrics, self.clock)
        self._definitions.append(definition)
        reconciler = JobReconciler(
            kind,
            jobs.store,
            self._pods.store,
            self._services.store,
            self._executor,
            self.clock,
            JobFigures(self.metrics, name),
            definition,
            _policy(options),
            {resource: informer.store for resource, informer in companions.items()},
            elastic,
        )
        return Controller(
            name,
            queue,
            reconciler.reconcile,
            self.metrics,
            workers=options.workers,
            timeout_s=options.reconcile_timeout_s,
            wait_synced=[informer.wait_synced for informer in (jobs, *watched, *scalers)],
            sync_timeout_s=SYNC_TIMEOUT_S,
        )

    def _elastic(
        self, kind: Kind, queue: WorkQueue[ObjectKey], jobs: Informer[JobObject]
    ) -> tuple[Elastic, list[Informer[Any]]]:
        """Return what looks after the workers of a kind that scales, and what it reads."""
        options, launchers = self.options, Launchers(self.client)
        scalers = {r: self._informer(r, ScalerObject) for r in kind.scalers}
        for resource, informer in scalers.items():
            informer.store.add_index(BY_JOB, by_job)
            self._subscriptions.append(partial(informer.add_handler, triggers.of_scalers(queue)))
            self._controllers.append(self._requests(resource, informer, kind, jobs))
        read: list[Informer[Any]] = list(scalers.values())
        nodes: Informer[Node] | None = None
        if options.node_signs and not options.namespace:
            nodes = Informer(self.client, NODES, Node, clock=self.clock, metrics=self.metrics)
            signs = frozenset(options.node_signs)
            nodes.store.add_index(GOING, lambda node: (GOING,) if node.shows(signs) else ())
            self._informers.append(nodes)
            woken = triggers.of_nodes(kind.resource, self._pods.store, options.node_signs, queue)
            self._subscriptions.append(partial(nodes.add_handler, woken))
            read.append(nodes)
        elastic = Elastic(
            {resource: informer.store for resource, informer in scalers.items()},
            Errands(launchers.perform, queue.add, slots=_launcher_slots(options)),
            self.client,
            self._executor.expectations,
            self._recorder,
            self.clock,
            _elastic_policy(options),
            nodes.store if nodes else None,
        )
        return elastic, read

    def _requests(
        self,
        resource: Resource,
        scalers: Informer[ScalerObject],
        kind: Kind,
        jobs: Informer[JobObject],
    ) -> Controller[ObjectKey]:
        """Return what looks after the requests of one kind that no job looks after."""
        name = resource.qualified
        queue: WorkQueue[ObjectKey] = WorkQueue(metrics=QueueFigures(self.metrics, name))
        self._subscriptions.append(partial(scalers.add_handler, triggers.of_jobs(queue)))
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


def _launcher_slots(
    options: Options,
) -> Callable[[ObjectKey, Errand], AbstractAsyncContextManager[None]]:
    """Return what gives errands their slots: scripts of users apart from all others."""
    scripts = FairSlots(options.scaler_script_slots)
    others = FairSlots(options.launcher_command_slots)

    def slot(owner: ObjectKey, errand: Errand) -> AbstractAsyncContextManager[None]:
        return (scripts if isinstance(errand, RunScript) else others).held(owner.namespace)

    return slot


def _elastic_policy(options: Options) -> ElasticPolicy:
    return ElasticPolicy(
        _policy(options).backoff,
        options.elastic_start_after_s,
        options.scale_in_wait_s,
        options.scale_out_wait_s,
    )


def _policy(options: Options) -> Policy:
    backoff = RestartBackoff(
        options.restart_backoff_s, options.restart_backoff_cap_s, options.restart_backoff_reset_s
    )
    return Policy(backoff, options.force_delete_after_s)

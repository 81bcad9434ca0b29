"""The informers of a controller process: one for each resource, however many kinds read it.

Nothing runs yet: ``manager`` runs them, and registers their handlers once this process leads.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from dlctl.api.meta import BATCH_JOBS, MANAGED_BY_SELECTOR, PODS, SERVICES, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import NODES, Node
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.objects.workloads import WORKLOAD_VERSIONS, WORKLOADS, Workload
from dlctl.clock import Clock
from dlctl.informers.discovered_informer import DiscoveredInformer
from dlctl.informers.informer import Informer
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.reconcilers.handlers import event_handlers
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.reconcilers.job.stores import WORKLOADS_BY_OWNER, index_by_owner
from dlctl.reconcilers.job.terminated_pods import TerminatedPods
from dlctl.reconcilers.kueue.workload_handlers import enqueue_queued_job
from dlctl.reconcilers.nodes.node_tracker import NodeTracker

logger = logging.getLogger(__name__)


@attrs.define(eq=False)
class SharedInformers:
    """The informers, and the handlers that enqueue the jobs of children, nodes and Workloads."""

    client: Client
    options: Options
    metrics: Metrics
    clock: Clock
    # The builder of the controllers adds the queues.
    queues: JobQueues = attrs.field(init=False, factory=JobQueues)
    required: list[Informer[Any]] = attrs.field(init=False, factory=list)
    # Nothing waits for them: the controller may lack the right to list their resources, or the
    # cluster may not serve these.
    optional: list[Informer[Any] | DiscoveredInformer[Any]] = attrs.field(init=False, factory=list)
    # Each registers an event handler.
    handler_registrations: list[Callable[[], object]] = attrs.field(init=False, factory=list)
    pods: Informer[Pod] = attrs.field(init=False)
    terminated_pods: TerminatedPods = attrs.field(init=False)
    services: Informer[Service] = attrs.field(init=False)
    workloads: DiscoveredInformer[Workload] = attrs.field(init=False)
    # None if the controller serves one namespace.
    nodes: Informer[Node] | None = attrs.field(init=False, default=None)
    node_tracker: NodeTracker = attrs.field(init=False)
    _dependents: dict[Resource, Informer[DependentObject]] = attrs.field(init=False, factory=dict)
    # None unless a kind has launchers that are pods of Jobs.
    _launcher_jobs: Informer[BatchJob] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.pods = self._of_children(PODS, Pod)
        self.terminated_pods = TerminatedPods(self.queues)
        self.handler_registrations.append(
            partial(self.pods.add_handler, self.terminated_pods.handle)
        )
        event_handlers.add_indexes(self.pods.store)
        self.services = self._of_children(SERVICES, Service)
        self.node_tracker = NodeTracker(
            NodeSignals.of(
                draining=self.options.node_drain_signals, fault=self.options.node_fault_signals
            )
        )
        self._watch_nodes()
        self._watch_workloads()

    def all_synced(self) -> bool:
        """Return whether all required ones have synced, or their resources are not served."""
        return all(informer.is_synced_or_unserved() for informer in self.required)

    def add(self, resource: Resource, as_: Any, selector: str = "") -> Informer[Any]:
        """Add an informer that controllers wait for."""
        informer: Informer[Any] = Informer(
            self.client,
            resource,
            as_,
            namespace=self.options.namespace,
            label_selector=selector,
            clock=self.clock,
            metrics=self.metrics,
        )
        self.required.append(informer)
        return informer

    def dependents(self, resource: Resource) -> Informer[DependentObject]:
        """Return the informer of a resource in which jobs of several kinds may own objects."""
        if resource not in self._dependents:
            self._dependents[resource] = self._of_children(resource, DependentObject)
        return self._dependents[resource]

    def launcher_jobs(self) -> Informer[BatchJob]:
        """Return the informer of the Jobs of launchers."""
        if self._launcher_jobs is None:
            self._launcher_jobs = self._of_children(BATCH_JOBS, BatchJob)
        return self._launcher_jobs

    def _of_children(self, resource: Resource, as_: Any) -> Informer[Any]:
        """Add an informer that enqueues the owners of changed children, of all kinds."""
        informer = self.add(resource, as_, MANAGED_BY_SELECTOR)
        self.handler_registrations.append(partial(self._enqueue_owners, informer))
        return informer

    def _watch_nodes(self) -> None:
        if self.options.namespace:
            logger.info("nodes are not watched, since the controller serves one namespace")
            return
        self.nodes = nodes = Informer(
            self.client, NODES, Node, clock=self.clock, metrics=self.metrics
        )
        self.optional.append(nodes)
        self.node_tracker.is_synced = nodes.has_synced
        self.handler_registrations.append(partial(self._enqueue_jobs_on_nodes, nodes))

    def _watch_workloads(self) -> None:
        self.workloads = DiscoveredInformer(
            self.client,
            WORKLOADS,
            WORKLOAD_VERSIONS,
            Workload,
            namespace=self.options.namespace,
            clock=self.clock,
            metrics=self.metrics,
        )
        self.workloads.store.add_index(WORKLOADS_BY_OWNER, index_by_owner)
        self.optional.append(self.workloads)
        self.handler_registrations.append(
            lambda: self.workloads.add_handler(enqueue_queued_job(self.queues, self.pods.store))
        )

    def _enqueue_owners(self, children: Informer[Any]) -> None:
        children.add_handler(
            event_handlers.enqueue_owner(self.queues, self.pods.store, self._launcher_store)
        )

    def _enqueue_jobs_on_nodes(self, nodes: Informer[Node]) -> None:
        nodes.add_handler(
            event_handlers.enqueue_jobs_on_node(
                self.queues, self.pods.store, self._launcher_store, self.node_tracker
            )
        )

    @property
    def _launcher_store(self) -> Store[BatchJob]:
        return self._launcher_jobs.store if self._launcher_jobs else Store()

"""Every metric of the program, under the names that dashboards of Go controllers already use.

One object holds them on a registry of its own: there is no global state, and two managers in one
process count apart. Attributes are named exactly like the metrics. Labels are bounded: a kind, a
resource, a result or an exit code, never the name of a job or a pod.
"""

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

# Decades from ten nanoseconds to a quarter of an hour: what a queue does takes microseconds.
QUEUE_BUCKETS: Final = tuple(1e-8 * 10**n for n in range(12))
# fmt: off
RECONCILE_BUCKETS: Final = (
    .005, .01, .025, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1, 1.25, 1.5,
    1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
REQUEST_BUCKETS: Final = (.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60)
SIZE_BUCKETS: Final = (
    64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216,
)
HANDLER_BUCKETS: Final = (.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
ITEM_BUCKETS: Final = (1, 10, 100, 500, 1000, 5000, 10000, 50000)
# From seconds to days: a job may wait for its quota, and train for a week.
JOB_BUCKETS: Final = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600)
PAUSE_BUCKETS: Final = (.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5)
# fmt: on


class Metrics:
    """The metrics of one manager, all on :attr:`registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._define_workqueue()
        self._define_controllers()
        self._define_requests()
        self._define_reflectors()
        self._define_informers()
        self._define_leader_election()
        self._define_jobs()
        self._define_training_operator()
        self._define_process()

    def _counter(self, name: str, help_: str, *labels: str) -> Counter:
        return Counter(name, help_, labels, registry=self.registry)

    def _gauge(self, name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(name, help_, labels, registry=self.registry)

    def _histogram(
        self, name: str, help_: str, *labels: str, buckets: Sequence[float]
    ) -> Histogram:
        return Histogram(name, help_, labels, registry=self.registry, buckets=buckets)

    def _define_workqueue(self) -> None:
        labels = ("name", "controller")
        self.workqueue_depth = self._gauge(
            "workqueue_depth", "Keys that are ready and wait for a worker", *labels, "priority"
        )
        self.workqueue_adds_total = self._counter(
            "workqueue_adds_total", "Keys added that were not already waiting", *labels
        )
        self.workqueue_retries_total = self._counter(
            "workqueue_retries_total", "Keys added with a delay", *labels
        )
        self.workqueue_queue_duration_seconds = self._histogram(
            "workqueue_queue_duration_seconds",
            "Seconds from the first add of a key until a worker took it",
            *labels,
            buckets=QUEUE_BUCKETS,
        )
        self.workqueue_work_duration_seconds = self._histogram(
            "workqueue_work_duration_seconds",
            "Seconds that a worker held a key",
            *labels,
            buckets=QUEUE_BUCKETS,
        )
        self.workqueue_unfinished_work_seconds = self._gauge(
            "workqueue_unfinished_work_seconds", "Age of all work in progress, summed up", *labels
        )
        self.workqueue_longest_running_processor_seconds = self._gauge(
            "workqueue_longest_running_processor_seconds", "Age of the oldest such work", *labels
        )

    def _define_controllers(self) -> None:
        self.controller_runtime_reconcile_total = self._counter(
            "controller_runtime_reconcile_total", "Reconciliations", "controller", "result"
        )
        self.controller_runtime_reconcile_errors_total = self._counter(
            "controller_runtime_reconcile_errors_total", "Reconciliations that failed", "controller"
        )
        self.controller_runtime_terminal_reconcile_errors_total = self._counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciliations that failed for good",
            "controller",
        )
        self.controller_runtime_reconcile_panics_total = self._counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciliations that failed by a programming error",
            "controller",
        )
        self.controller_runtime_reconcile_timeouts_total = self._counter(
            "controller_runtime_reconcile_timeouts_total",
            "Reconciliations that took longer than allowed",
            "controller",
        )
        self.controller_runtime_reconcile_time_seconds = self._histogram(
            "controller_runtime_reconcile_time_seconds",
            "Seconds that a reconciliation took",
            "controller",
            buckets=RECONCILE_BUCKETS,
        )
        self.controller_runtime_max_concurrent_reconciles = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers", "controller"
        )
        self.controller_runtime_active_workers = self._gauge(
            "controller_runtime_active_workers", "Workers that hold a key", "controller"
        )

    def _define_requests(self) -> None:
        self.rest_client_requests_total = self._counter(
            "rest_client_requests_total", "Requests answered", "code", "method", "host"
        )
        self.rest_client_request_retries_total = self._counter(
            "rest_client_request_retries_total", "Requests sent again", "code", "verb", "host"
        )
        self.rest_client_request_duration_seconds = self._histogram(
            "rest_client_request_duration_seconds",
            "Seconds to the end of an answer, or to the head of a watch's",
            "verb",
            "host",
            buckets=REQUEST_BUCKETS,
        )
        self.rest_client_rate_limiter_duration_seconds = self._histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Seconds that a request was held back on our side",
            "verb",
            "host",
            buckets=REQUEST_BUCKETS,
        )
        self.rest_client_dns_resolution_duration_seconds = self._histogram(
            "rest_client_dns_resolution_duration_seconds",
            "Seconds to find the address of a host",
            "host",
            buckets=REQUEST_BUCKETS,
        )
        self.rest_client_request_size_bytes = self._histogram(
            "rest_client_request_size_bytes", "Bytes sent", "verb", "host", buckets=SIZE_BUCKETS
        )
        self.rest_client_response_size_bytes = self._histogram(
            "rest_client_response_size_bytes",
            "Bytes received",
            "verb",
            "host",
            buckets=SIZE_BUCKETS,
        )

    def _define_reflectors(self) -> None:
        self.reflector_lists_total = self._counter("reflector_lists_total", "Lists", "name")
        self.reflector_list_duration_seconds = self._histogram(
            "reflector_list_duration_seconds",
            "Seconds that a list took, all its pages",
            "name",
            buckets=REQUEST_BUCKETS,
        )
        self.reflector_items_per_list = self._histogram(
            "reflector_items_per_list", "Objects in a list", "name", buckets=ITEM_BUCKETS
        )
        self.reflector_watches_total = self._counter("reflector_watches_total", "Watches", "name")
        self.reflector_short_watches_total = self._counter(
            "reflector_short_watches_total", "Watches under a second without an event", "name"
        )
        self.reflector_watch_duration_seconds = self._histogram(
            "reflector_watch_duration_seconds",
            "Seconds that a watch lasted",
            "name",
            buckets=(1, 10, 60, 300, 600, 1800),
        )
        self.reflector_items_per_watch = self._histogram(
            "reflector_items_per_watch", "Events of a watch", "name", buckets=ITEM_BUCKETS
        )
        self.reflector_last_resource_version = self._gauge(
            "reflector_last_resource_version", "Last 15 digits of the version seen", "name"
        )

    def _define_informers(self) -> None:
        labels = ("name", "group", "version", "resource")
        self.informer_queued_items = self._gauge(
            "informer_queued_items", "Changes not yet shown to the handlers", *labels
        )
        self.informer_store_resource_version = self._gauge(
            "informer_store_resource_version", "Last 15 digits of the store's version", *labels
        )
        self.informer_processing_latency_seconds = self._histogram(
            "informer_processing_latency_seconds",
            "Seconds that the handlers took for a change",
            *labels,
            buckets=HANDLER_BUCKETS,
        )
        self.informer_malformed_objects_total = self._counter(
            "informer_malformed_objects_total", "Objects that could not be decoded", *labels
        )
        self.informer_handler_errors_total = self._counter(
            "informer_handler_errors_total", "Changes on which a handler failed", *labels
        )

    def _define_leader_election(self) -> None:
        self.leader_election_master_status = self._gauge(
            "leader_election_master_status", "1 while this process leads, else 0", "name"
        )
        self.leader_election_slowpath_total = self._counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease", "name"
        )

    def _define_jobs(self) -> None:
        self.dlctl_jobs = self._gauge("dlctl_jobs", "Jobs by phase", "kind", "namespace", "phase")
        self.dlctl_job_restarts_total = self._counter(
            "dlctl_job_restarts_total", "Replicas run again", "kind", "cause", "exit_code"
        )
        self.dlctl_broken_frameworks = self._gauge(
            "dlctl_broken_frameworks", "1 for each framework that cannot be loaded", "framework"
        )
        self.dlctl_content_errors_total = self._counter(
            "dlctl_content_errors_total",
            "Steps that failed on the content of a job",
            "kind",
            "step",
        )
        self.dlctl_job_start_duration_seconds = self._histogram(
            "dlctl_job_start_duration_seconds",
            "Seconds from the creation of a job until all its replicas ran",
            "kind",
            buckets=JOB_BUCKETS,
        )
        self.dlctl_job_run_duration_seconds = self._histogram(
            "dlctl_job_run_duration_seconds",
            "Seconds from the start of a job to its end",
            "kind",
            "result",
            buckets=JOB_BUCKETS,
        )
        self.dlctl_status_conflicts_total = self._counter(
            "dlctl_status_conflicts_total",
            "Times that another operator has overwritten the status of a job again",
            "kind",
        )
        self.dlctl_crd_outdated = self._gauge(
            "dlctl_crd_outdated",
            "1 if the definition of a kind drops what dlctl remembers of its jobs",
            "kind",
        )
        self.dlctl_events_dropped_total = self._counter(
            "dlctl_events_dropped_total", "Events that never reached the server", "reason"
        )

    def _define_training_operator(self) -> None:
        # The names and labels of Kubeflow's training-operator, for jobs of its API group.
        labels = ("job_namespace", "framework")
        self.training_operator_jobs_created_total = self._counter(
            "training_operator_jobs_created_total", "Jobs taken up", *labels
        )
        self.training_operator_jobs_deleted_total = self._counter(
            "training_operator_jobs_deleted_total", "Jobs deleted, by whomever", *labels
        )
        self.training_operator_jobs_successful_total = self._counter(
            "training_operator_jobs_successful_total", "Jobs that have succeeded", *labels
        )
        self.training_operator_jobs_failed_total = self._counter(
            "training_operator_jobs_failed_total", "Jobs that have failed", *labels
        )
        self.training_operator_jobs_restarted_total = self._counter(
            "training_operator_jobs_restarted_total", "Restarts in jobs, one a replica", *labels
        )

    def _define_process(self) -> None:
        ProcessCollector(registry=self.registry)
        self.dlctl_event_loop_lag_seconds = self._histogram(
            "dlctl_event_loop_lag_seconds",
            "Seconds by which the event loop woke a sleeper too late",
            buckets=PAUSE_BUCKETS,
        )
        self.dlctl_gc_pause_seconds = self._histogram(
            "dlctl_gc_pause_seconds",
            "Seconds that the garbage collector stopped the process for",
            "generation",
            buckets=PAUSE_BUCKETS,
        )


async def observe_loop_lag(lag: Histogram, *, period_s: float = 0.5) -> None:
    """Measure how late the loop wakes a sleeper, for ever: what blocks the loop shows here."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + period_s
        await asyncio.sleep(period_s)
        lag.observe(max(0.0, loop.time() - due))


@contextmanager
def observe_gc_pauses(pause: Histogram) -> Iterator[None]:
    """Time the garbage collector's runs for the duration of the block, by generation."""
    started = 0.0

    def observe(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = time.perf_counter()
        else:
            pause.labels(str(info["generation"])).observe(time.perf_counter() - started)

    gc.callbacks.append(observe)
    try:
        yield
    finally:
        gc.callbacks.remove(observe)

"""All metrics of the program, with the names that dashboards of Go controllers use.

One object holds them on its own registry: there is no global state, and two managers in one process
count separately. Attributes have the names of the metrics. Labels are bounded: a kind, a
resource, a namespace, a result or an exit code. Only ``mpi_operator_job_info`` names a launcher, as
mpi-operator does.
"""

from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

# Decades from 10 ns to 1000 s: queue operations take microseconds.
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
# From seconds to days: a job may wait for quota and train for a week.
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
        self._define_nodes()
        self._define_training_operator()
        self._define_mpi_operator()
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
            "workqueue_depth", "Keys ready for a worker", *labels, "priority"
        )
        self.workqueue_adds_total = self._counter(
            "workqueue_adds_total", "Keys added that were not queued already", *labels
        )
        self.workqueue_retries_total = self._counter(
            "workqueue_retries_total", "Keys added with a delay", *labels
        )
        self.workqueue_queue_duration_seconds = self._histogram(
            "workqueue_queue_duration_seconds",
            "Seconds from a key's first add until a worker takes it",
            *labels,
            buckets=QUEUE_BUCKETS,
        )
        self.workqueue_work_duration_seconds = self._histogram(
            "workqueue_work_duration_seconds",
            "Seconds a worker processes a key",
            *labels,
            buckets=QUEUE_BUCKETS,
        )
        self.workqueue_unfinished_work_seconds = self._gauge(
            "workqueue_unfinished_work_seconds", "Sum of the ages of all keys in progress", *labels
        )
        self.workqueue_longest_running_processor_seconds = self._gauge(
            "workqueue_longest_running_processor_seconds",
            "Age of the oldest key in progress",
            *labels,
        )

    def _define_controllers(self) -> None:
        self.controller_runtime_reconcile_total = self._counter(
            "controller_runtime_reconcile_total", "Reconciliations", "controller", "result"
        )
        self.controller_runtime_reconcile_errors_total = self._counter(
            "controller_runtime_reconcile_errors_total", "Failed reconciles", "controller"
        )
        self.controller_runtime_terminal_reconcile_errors_total = self._counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed with an error that is not retried",
            "controller",
        )
        self.controller_runtime_reconcile_panics_total = self._counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that failed with a programming error",
            "controller",
        )
        self.controller_runtime_reconcile_timeouts_total = self._counter(
            "controller_runtime_reconcile_timeouts_total",
            "Reconciles that timed out",
            "controller",
        )
        self.controller_runtime_reconcile_time_seconds = self._histogram(
            "controller_runtime_reconcile_time_seconds",
            "Seconds a reconcile takes",
            "controller",
            buckets=RECONCILE_BUCKETS,
        )
        self.controller_runtime_max_concurrent_reconciles = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers", "controller"
        )
        self.controller_runtime_active_workers = self._gauge(
            "controller_runtime_active_workers", "Workers processing a key", "controller"
        )

    def _define_requests(self) -> None:
        self.rest_client_requests_total = self._counter(
            "rest_client_requests_total", "HTTP requests by status code", "code", "method", "host"
        )
        self.rest_client_request_retries_total = self._counter(
            "rest_client_request_retries_total", "HTTP requests retried", "code", "verb", "host"
        )
        self.rest_client_request_duration_seconds = self._histogram(
            "rest_client_request_duration_seconds",
            "Seconds until the response is read; for a watch, until its headers arrive",
            "verb",
            "host",
            buckets=REQUEST_BUCKETS,
        )
        self.rest_client_rate_limiter_duration_seconds = self._histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Seconds a request waits in the client: for its turn to write, and for --kube-api-qps",
            "verb",
            "host",
            buckets=REQUEST_BUCKETS,
        )
        self.dlctl_write_limit = self._gauge(
            "dlctl_write_limit", "Concurrent writes that the API server is found to take"
        )
        self.dlctl_writes_waiting = self._gauge(
            "dlctl_writes_waiting", "Writes that wait for others to finish"
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
            "Seconds a list takes, all pages included",
            "name",
            buckets=REQUEST_BUCKETS,
        )
        self.reflector_items_per_list = self._histogram(
            "reflector_items_per_list", "Objects per list", "name", buckets=ITEM_BUCKETS
        )
        self.reflector_watches_total = self._counter("reflector_watches_total", "Watches", "name")
        self.reflector_short_watches_total = self._counter(
            "reflector_short_watches_total",
            "Watches shorter than a second without an event",
            "name",
        )
        self.reflector_watch_duration_seconds = self._histogram(
            "reflector_watch_duration_seconds",
            "Seconds a watch lasts",
            "name",
            buckets=(1, 10, 60, 300, 600, 1800),
        )
        self.reflector_items_per_watch = self._histogram(
            "reflector_items_per_watch", "Events per watch", "name", buckets=ITEM_BUCKETS
        )
        self.reflector_last_resource_version = self._gauge(
            "reflector_last_resource_version",
            "Last 15 digits of the last seen resource version",
            "name",
        )

    def _define_informers(self) -> None:
        labels = ("name", "group", "version", "resource")
        self.informer_queued_items = self._gauge(
            "informer_queued_items", "Changes not yet delivered to the handlers", *labels
        )
        self.informer_store_resource_version = self._gauge(
            "informer_store_resource_version",
            "Last 15 digits of the store's resource version",
            *labels,
        )
        self.informer_processing_latency_seconds = self._histogram(
            "informer_processing_latency_seconds",
            "Seconds the handlers take per change",
            *labels,
            buckets=HANDLER_BUCKETS,
        )
        self.informer_malformed_objects_total = self._counter(
            "informer_malformed_objects_total", "Objects that could not be decoded", *labels
        )
        self.informer_handler_errors_total = self._counter(
            "informer_handler_errors_total", "Changes for which a handler raised", *labels
        )

    def _define_leader_election(self) -> None:
        self.leader_election_master_status = self._gauge(
            "leader_election_master_status", "1 while this process is the leader, else 0", "name"
        )
        self.leader_election_slowpath_total = self._counter(
            "leader_election_slowpath_total", "Renewals that read the lease first", "name"
        )

    def _define_jobs(self) -> None:
        self.dlctl_jobs = self._gauge("dlctl_jobs", "Jobs by phase", "kind", "namespace", "phase")
        self.dlctl_job_failures_total = self._counter(
            "dlctl_job_failures_total",
            "Attempts of jobs that failed, by first cause",
            "kind",
            "namespace",
            "cause",
        )
        self.dlctl_job_restarts_total = self._counter(
            "dlctl_job_restarts_total", "Replicas restarted", "kind", "cause", "exit_code"
        )
        self.dlctl_framework_load_errors = self._gauge(
            "dlctl_framework_load_errors", "1 for each framework that fails to load", "framework"
        )
        self.dlctl_content_errors_total = self._counter(
            "dlctl_content_errors_total",
            "Reconcile steps that failed because of a job's content",
            "kind",
            "step",
        )
        self.dlctl_job_start_duration_seconds = self._histogram(
            "dlctl_job_start_duration_seconds",
            "Seconds from the creation of a job until it is first Running",
            "kind",
            buckets=JOB_BUCKETS,
        )
        self.dlctl_job_run_duration_seconds = self._histogram(
            "dlctl_job_run_duration_seconds",
            "Seconds from the start of a job until it finishes",
            "kind",
            "result",
            buckets=JOB_BUCKETS,
        )
        self.dlctl_status_conflicts_total = self._counter(
            "dlctl_status_conflicts_total",
            "Repeated overwrites of a job's status by another operator",
            "kind",
        )
        self.dlctl_crd_outdated = self._gauge(
            "dlctl_crd_outdated",
            "1 if the CRD of a kind prunes status.dlctl",
            "kind",
        )
        self.dlctl_events_dropped_total = self._counter(
            "dlctl_events_dropped_total", "Events that were not sent", "reason"
        )

    def _define_nodes(self) -> None:
        self.dlctl_node_charges_total = self._counter(
            "dlctl_node_charges_total", "Attempts of jobs that ended by a fault of a node", "cause"
        )
        self.dlctl_avoided_nodes = self._gauge(
            "dlctl_avoided_nodes", "Nodes that several jobs have charged, as the API proves"
        )

    def _define_training_operator(self) -> None:
        # Names and labels of Kubeflow's training-operator, for jobs of its API group.
        labels = ("job_namespace", "framework")
        self.training_operator_jobs_created_total = self._counter(
            "training_operator_jobs_created_total", "Jobs created", *labels
        )
        self.training_operator_jobs_deleted_total = self._counter(
            "training_operator_jobs_deleted_total", "Jobs deleted", *labels
        )
        self.training_operator_jobs_successful_total = self._counter(
            "training_operator_jobs_successful_total", "Jobs that succeeded", *labels
        )
        self.training_operator_jobs_failed_total = self._counter(
            "training_operator_jobs_failed_total", "Jobs that failed", *labels
        )
        self.training_operator_jobs_restarted_total = self._counter(
            "training_operator_jobs_restarted_total", "Replica restarts of jobs", *labels
        )

    def _define_mpi_operator(self) -> None:
        # Names and labels of mpi-operator, for its MPIJobs.
        self.mpi_operator_jobs_created_total = self._counter(
            "mpi_operator_jobs_created_total", "MPIJobs of v2beta1 created"
        )
        self.mpi_operator_jobs_successful_total = self._counter(
            "mpi_operator_jobs_successful_total", "MPIJobs of v2beta1 that succeeded"
        )
        self.mpi_operator_jobs_failed_total = self._counter(
            "mpi_operator_jobs_failed_total", "MPIJobs of v2beta1 that failed"
        )
        self.mpi_operator_job_info = self._gauge(
            "mpi_operator_job_info", "1 for each launcher of an MPIJob", "launcher", "namespace"
        )
        self.mpi_operator_is_leader = self._gauge(
            "mpi_operator_is_leader", "1 while this process reconciles, else 0"
        )

    def _define_process(self) -> None:
        ProcessCollector(registry=self.registry)
        self.dlctl_event_loop_lag_seconds = self._histogram(
            "dlctl_event_loop_lag_seconds",
            "Seconds the event loop wakes a sleeper late",
            buckets=PAUSE_BUCKETS,
        )
        self.dlctl_gc_pause_seconds = self._histogram(
            "dlctl_gc_pause_seconds",
            "Seconds the garbage collector pauses the process",
            "generation",
            buckets=PAUSE_BUCKETS,
        )

import pytest
from prometheus_client import Metric

from dlctl.metrics import Metrics

QUEUE = ("name", "controller")
INFORMER = ("name", "group", "version", "resource")

# Dashboards are made for these: a name or a label that changes here breaks them.
LABELS = {
    "workqueue_depth": (*QUEUE, "priority"),
    "workqueue_adds_total": QUEUE,
    "workqueue_retries_total": QUEUE,
    "workqueue_queue_duration_seconds": QUEUE,
    "workqueue_work_duration_seconds": QUEUE,
    "workqueue_unfinished_work_seconds": QUEUE,
    "workqueue_longest_running_processor_seconds": QUEUE,
    "controller_runtime_reconcile_total": ("controller", "result"),
    "controller_runtime_reconcile_errors_total": ("controller",),
    "controller_runtime_terminal_reconcile_errors_total": ("controller",),
    "controller_runtime_reconcile_panics_total": ("controller",),
    "controller_runtime_reconcile_timeouts_total": ("controller",),
    "controller_runtime_reconcile_time_seconds": ("controller",),
    "controller_runtime_max_concurrent_reconciles": ("controller",),
    "controller_runtime_active_workers": ("controller",),
    "rest_client_requests_total": ("code", "method", "host"),
    "rest_client_request_retries_total": ("code", "verb", "host"),
    "rest_client_request_duration_seconds": ("verb", "host"),
    "rest_client_rate_limiter_duration_seconds": ("verb", "host"),
    "dlctl_write_limit": (),
    "dlctl_writes_waiting": (),
    "rest_client_request_size_bytes": ("verb", "host"),
    "rest_client_response_size_bytes": ("verb", "host"),
    "leader_election_master_status": ("name",),
    "leader_election_slowpath_total": ("name",),
    "reflector_lists_total": ("name",),
    "reflector_list_duration_seconds": ("name",),
    "reflector_items_per_list": ("name",),
    "reflector_watches_total": ("name",),
    "reflector_short_watches_total": ("name",),
    "reflector_watch_duration_seconds": ("name",),
    "reflector_items_per_watch": ("name",),
    "reflector_last_resource_version": ("name",),
    "informer_queued_items": INFORMER,
    "informer_store_resource_version": INFORMER,
    "informer_processing_latency_seconds": INFORMER,
    "informer_malformed_objects_total": INFORMER,
    "informer_handler_errors_total": INFORMER,
    "training_operator_jobs_created_total": ("job_namespace", "framework"),
    "training_operator_jobs_deleted_total": ("job_namespace", "framework"),
    "training_operator_jobs_successful_total": ("job_namespace", "framework"),
    "training_operator_jobs_failed_total": ("job_namespace", "framework"),
    "training_operator_jobs_restarted_total": ("job_namespace", "framework"),
    "mpi_operator_jobs_created_total": (),
    "mpi_operator_jobs_successful_total": (),
    "mpi_operator_jobs_failed_total": (),
    "mpi_operator_job_info": ("launcher", "namespace"),
    "mpi_operator_is_leader": (),
    "dlctl_jobs": ("kind", "namespace", "phase"),
    "dlctl_job_failures_total": ("kind", "namespace", "cause"),
    "dlctl_job_restarts_total": ("kind", "cause", "exit_code"),
    "dlctl_framework_load_errors": ("framework",),
    "dlctl_content_errors_total": ("kind", "step"),
    "dlctl_job_start_duration_seconds": ("kind",),
    "dlctl_job_run_duration_seconds": ("kind", "result"),
    "dlctl_status_conflicts_total": ("kind",),
    "dlctl_crd_outdated": ("kind",),
    "dlctl_events_dropped_total": ("reason",),
    "dlctl_node_charges_total": ("cause",),
    "dlctl_avoided_nodes": (),
    "dlctl_event_loop_lag_seconds": (),
    "dlctl_gc_pause_seconds": ("generation",),
}

BOUNDS = {
    "workqueue_queue_duration_seconds": ["1e-08", "1000.0"],
    "workqueue_work_duration_seconds": ["1e-08", "1000.0"],
    "controller_runtime_reconcile_time_seconds": ["0.005", "60.0"],
    "rest_client_request_duration_seconds": ["0.005", "60.0"],
    "rest_client_request_size_bytes": ["64.0", "1.6777216e+07"],
    "informer_processing_latency_seconds": ["0.001", "10.0"],
}
BUCKETS = {
    "workqueue_queue_duration_seconds": 12,
    "workqueue_work_duration_seconds": 12,
    "controller_runtime_reconcile_time_seconds": 40,
    "rest_client_request_duration_seconds": 12,
    "rest_client_request_size_bytes": 11,
    "informer_processing_latency_seconds": 12,
}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def use(metrics: Metrics, name: str) -> None:
    """Make the metric exist in the output, as the first use of its labels does."""
    labels = LABELS[name]
    if labels:
        getattr(metrics, name).labels(*labels)


def family(metrics: Metrics, name: str) -> Metric:
    families = {collected.name: collected for collected in metrics.registry.collect()}
    return families[name.removesuffix("_total")]


@pytest.mark.parametrize("name", LABELS)
def test_metric_has_the_name_of_its_attribute_and_the_labels_expected(
    metrics: Metrics, name: str
) -> None:
    use(metrics, name)
    samples = family(metrics, name).samples

    assert any(sample.name in (name, f"{name}_count") for sample in samples)
    assert all(set(sample.labels) - {"le"} == set(LABELS[name]) for sample in samples)


def test_every_metric_is_accounted_for(metrics: Metrics) -> None:
    for name in LABELS:
        use(metrics, name)
    found = {collected.name for collected in metrics.registry.collect()}

    # The client library brings the figures of the process itself.
    assert {name for name in found if not name.startswith("process_")} == {
        name.removesuffix("_total") for name in LABELS
    }


def test_memory_of_the_process_is_measured(metrics: Metrics) -> None:
    assert metrics.registry.get_sample_value("process_resident_memory_bytes")


@pytest.mark.parametrize("name", BUCKETS)
def test_histogram_has_the_buckets_expected(metrics: Metrics, name: str) -> None:
    use(metrics, name)
    samples = family(metrics, name).samples
    bounds = [sample.labels["le"] for sample in samples if sample.name == f"{name}_bucket"]

    assert bounds.pop() == "+Inf"
    assert len(bounds) == BUCKETS[name]
    assert [bounds[0], bounds[-1]] == BOUNDS[name]


def test_two_programs_in_one_process_count_separately(metrics: Metrics) -> None:
    other = Metrics()
    metrics.reflector_lists_total.labels("pods").inc()

    assert other.registry.get_sample_value("reflector_lists_total", {"name": "pods"}) is None

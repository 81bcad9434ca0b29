"""Prometheus metrics of a work queue.

Not in ``workqueue``, which knows neither Prometheus nor controllers.
"""

from collections.abc import Callable, Sequence
from typing import Final

from prometheus_client import Gauge

from dlctl.metrics import Metrics

# Priorities can be any integer: beyond this many, the rest share a label.
MAX_PRIORITIES: Final = 25
OTHER_PRIORITIES: Final = "exceeded_cardinality_limit"


class QueueMetrics:
    """Sets the ``workqueue_*`` metrics of one controller's queue."""

    def __init__(self, metrics: Metrics, controller: str) -> None:
        self._metrics = metrics
        self._controller = controller
        labels = (controller, controller)
        self._adds = metrics.workqueue_adds_total.labels(*labels)
        self._retries = metrics.workqueue_retries_total.labels(*labels)
        self._waited = metrics.workqueue_queue_duration_seconds.labels(*labels)
        self._worked = metrics.workqueue_work_duration_seconds.labels(*labels)
        self._depths: dict[int, Gauge] = {}
        self._others: dict[int, int] = {}

    def depth(self, priority: int, keys: int) -> None:
        gauge = self._depths.get(priority)
        if gauge is None and len(self._depths) < MAX_PRIORITIES:
            gauge = self._depths[priority] = self._gauge(str(priority))
        if gauge is not None:
            gauge.set(keys)
        else:
            self._others[priority] = keys
            self._gauge(OTHER_PRIORITIES).set(sum(self._others.values()))

    def added(self) -> None:
        self._adds.inc()

    def retried(self) -> None:
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        self._worked.observe(seconds)

    def set_ages_source(self, ages_s: Callable[[], Sequence[float]]) -> None:
        # Computed when the metrics are collected, so never out of date.
        labels = (self._controller, self._controller)
        self._metrics.workqueue_unfinished_work_seconds.labels(*labels).set_function(
            lambda: sum(ages_s())
        )
        self._metrics.workqueue_longest_running_processor_seconds.labels(*labels).set_function(
            lambda: max(ages_s(), default=0.0)
        )

    def _gauge(self, priority: str) -> Gauge:
        return self._metrics.workqueue_depth.labels(self._controller, self._controller, priority)

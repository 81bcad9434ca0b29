"""The metrics of one reflector, resolved once instead of per event."""

from collections.abc import Callable

from dlctl.metrics import Metrics


class ReflectorMetrics:
    """Records the lists and watches of a reflector under the name of its resource."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._lists = metrics.reflector_lists_total.labels(name)
        self._list_seconds = metrics.reflector_list_duration_seconds.labels(name)
        self._list_items = metrics.reflector_items_per_list.labels(name)
        self._watches = metrics.reflector_watches_total.labels(name)
        self._short_watches = metrics.reflector_short_watches_total.labels(name)
        self._watch_seconds = metrics.reflector_watch_duration_seconds.labels(name)
        self._watch_items = metrics.reflector_items_per_watch.labels(name)
        self._version = metrics.reflector_last_resource_version.labels(name)

    def listed(self, items: int, seconds: float) -> None:
        self._lists.inc()
        self._list_items.observe(items)
        self._list_seconds.observe(seconds)

    def watched(self, items: int, seconds: float, *, short: bool) -> None:
        self._watches.inc()
        self._watch_items.observe(items)
        self._watch_seconds.observe(seconds)
        if short:
            self._short_watches.inc()

    def set_version_source(self, read: Callable[[], float]) -> None:
        """Read the version when the metrics are collected, not per event."""
        self._version.set_function(read)

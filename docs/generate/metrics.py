"""The table of all metrics, from the registry that the controller serves."""

from collections.abc import Iterator

from prometheus_client.metrics import MetricWrapperBase

from dlctl.metrics import Metrics
from docs.generate.tables import table


def all_metrics() -> str:
    rows = ((f"`{name}`", *_description(metric)) for name, metric in _metrics())
    return table(("metric", "type", "labels", "meaning"), rows)


def _metrics() -> Iterator[tuple[str, MetricWrapperBase]]:
    for name, metric in vars(Metrics()).items():
        if isinstance(metric, MetricWrapperBase):
            yield name, metric


def _description(metric: MetricWrapperBase) -> tuple[str, str, str]:
    (described,) = metric.describe()
    # A metric with labels has no samples yet that would show them.
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001
    return described.type, labels, described.documentation

"""Metrics in the text format of Prometheus, rendered a part at a time."""

import asyncio
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Final

import attrs
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

# A few milliseconds.
_SAMPLES_PER_TURN: Final = 1000


async def exposition(registry: CollectorRegistry) -> bytes:
    """Return the metrics as text; yields to the event loop after a part of each metric."""
    lines: list[bytes] = []
    headers = set[bytes]()
    for metric in registry.collect():
        for part in _parts(metric):
            text = generate_latest(_SingleMetric(part)).splitlines(keepends=True)
            # Each part begins with the name, help and type of the metric.
            lines += (line for line in text if not line.startswith(b"#") or line not in headers)
            headers.update(line for line in text if line.startswith(b"#"))
            await asyncio.sleep(0)
    return b"".join(lines)


def _parts(metric: Metric) -> Iterator[Metric]:
    """Yield a metric with some of its samples at a time; times of creation are one of their own."""
    samples = sorted(metric.samples, key=lambda sample: sample.name.endswith("_created"))
    for start in range(0, max(len(samples), 1), _SAMPLES_PER_TURN):
        part = copy(metric)
        part.samples = samples[start : start + _SAMPLES_PER_TURN]
        yield part


@attrs.frozen
class _SingleMetric(Collector):
    """A registry of one metric with its samples."""

    metric: Metric

    def collect(self) -> Iterable[Metric]:
        return (self.metric,)

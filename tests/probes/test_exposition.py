"""The rendering of many metrics."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

from dlctl.probes.exposition import exposition
from tests.support.timing import turns_during


async def test_metrics_of_many_namespaces_are_rendered_in_parts_to_the_same_text() -> None:
    registry = CollectorRegistry()
    labels: Any = {"labelnames": ["namespace"], "registry": registry}
    created = Counter("created", "Jobs created", **labels)
    waited = Histogram("waited", "Seconds waited", **labels)
    for number in range(2000):
        created.labels(f"n{number}").inc()
        waited.labels(f"n{number}").observe(number)

    async def render() -> None:
        assert await exposition(registry) == generate_latest(registry)

    # Of 17 samples and a time of creation for each histogram, and one of each for a counter.
    assert await turns_during(render()) >= 40

"""Metrics of a running controller."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

import aiohttp
import attrs
from prometheus_client.parser import text_string_to_metric_families


@attrs.frozen
class Metrics:
    """All samples of one scrape."""

    values: Iterable[tuple[str, float]]

    @classmethod
    def parse(cls, text: str) -> "Metrics":
        families = text_string_to_metric_families(text)
        return cls([(s.name, s.value) for family in families for s in family.samples])

    def total(self, name: str) -> float:
        """Return the sum over all labels; 0 if there is none."""
        return sum(value for found, value in self.values if found == name)

    def highest(self, name: str) -> float:
        return max((value for found, value in self.values if found == name), default=0.0)


async def scrape(url: str) -> Metrics:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        return Metrics.parse(await response.text())


@asynccontextmanager
async def scraping(
    url: str, on_metrics: Callable[[Metrics], None], period_s: float = 1.0
) -> AsyncIterator[None]:
    """Scrape regularly during the block. The controller renders its metrics once a second."""

    async def scrape_all() -> None:
        while True:
            with suppress(aiohttp.ClientError):
                on_metrics(await scrape(url))
            await asyncio.sleep(period_s)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(scrape_all())
        yield
        task.cancel()

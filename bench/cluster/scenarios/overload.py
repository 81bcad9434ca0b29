"""An API server that answers 429: what gets through of what could."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

import attrs

from bench.cluster import plain_children, plain_writers
from bench.cluster.api_server import ApiServer
from bench.cluster.audit import is_write, status_code
from bench.cluster.controller_metrics import Metrics, scraping
from bench.cluster.limited_user import LimitedUser, limited_user
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures
from bench.cluster.scenarios.creation import Times, create_jobs
from dlctl.api.json_types import JSON

# As many as other scenarios have.
_MAX_PLAIN: Final = 1000
_THROTTLED: Final = 429


@attrs.frozen
class Overload:
    """A number of jobs, and the replicas of each, created by a user with few seats."""

    jobs: int = 200
    replicas: int = 4
    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        config = json.loads((bench.folder / "admin.kubeconfig").read_text())
        total = self.jobs * self.replicas
        plain = min(total, _MAX_PLAIN)
        series = _Series()
        async with (
            namespace(bench.server) as home,
            limited_user(bench.server, home, config, bench.folder) as user,
        ):
            plain_s = await _plain_s(bench, user, plain) * total / plain
            floor_s = await self._floor_s(bench, user)
            with program.run(kubeconfig=user.kubeconfig) as operator:
                mark = bench.audit.end()
                async with namespace(bench.server) as name, scraping(operator.url, series.add):
                    times = await create_jobs(bench.server, name, self.jobs, self.replicas)
                    await asyncio.sleep(1.0)
                    writes = [e for e in bench.audit.requests(mark) if is_write(e)]
        of_floor = {"children_goodput_of_floor": _share(floor_s, times.children_s)}
        return {**_goodput(times, writes, plain_s, total), **of_floor, **series.figures()}

    async def _floor_s(self, bench: Bench, user: LimitedUser) -> float:
        """Measure dlctl's pods and services from as many writers, without a controller."""
        async with namespace(bench.server) as name, ApiServer.of(user.config) as limited:
            jobs = await plain_children.submit(bench.server, name, self.jobs, self.replicas)
            start = time.perf_counter()
            await plain_children.fill(limited, name, jobs, writers=user.in_flight)
            return time.perf_counter() - start


async def _plain_s(bench: Bench, user: LimitedUser, replicas: int) -> float:
    """Measure as many writers as the server takes without a 429."""
    async with namespace(bench.server) as name, ApiServer.of(user.config) as limited:
        return await plain_writers.fill_s(limited, name, replicas, writers=user.in_flight)


def _goodput(times: Times, writes: Sequence[JSON], plain_s: float, total: int) -> Figures:
    codes = Counter(map(status_code, writes))
    plain_per_s = 2 * total / plain_s
    return {
        "plain_s": plain_s,
        "children_goodput": _share(plain_s, times.children_s),
        "write_goodput": _per_s_until_last_child(writes) / plain_per_s,
        "throttled_share": codes[_THROTTLED] / len(writes) if writes else None,
        "requests_per_child": len(writes) / (2 * total),
    }


def _share(fastest_s: float, taken_s: float | None) -> float | None:
    return None if taken_s is None else fastest_s / taken_s


def _per_s_until_last_child(writes: Sequence[JSON]) -> float:
    """Return the successful writes per second for as long as there were children to create."""
    done = [
        (datetime.fromisoformat(e["stageTimestamp"]), e["objectRef"]["resource"])
        for e in writes
        if 200 <= status_code(e) < 300
    ]
    last = max(at for at, resource in done if resource in ("pods", "services"))
    until_then = [at for at, _ in done if at <= last]
    return len(until_then) / (last - min(until_then)).total_seconds()


@attrs.define
class _Series:
    """What the controller shows of the overload, about once a second."""

    since: float = attrs.field(factory=time.monotonic)
    at_s: list[float] = attrs.field(factory=list)
    limit: list[float] = attrs.field(factory=list)
    waiting: list[float] = attrs.field(factory=list)
    oldest_s: list[float] = attrs.field(factory=list)

    def add(self, metrics: Metrics) -> None:
        if not self.at_s:
            self.since = time.monotonic()
        self.at_s.append(time.monotonic() - self.since)
        self.limit.append(metrics.total("dlctl_write_limit"))
        self.waiting.append(metrics.total("dlctl_writes_waiting"))
        self.oldest_s.append(metrics.highest("workqueue_longest_running_processor_seconds"))

    def figures(self) -> Figures:
        return {
            "at_s": self.at_s,
            "write_limit": self.limit,
            "writes_waiting": self.waiting,
            "oldest_reconcile_s": self.oldest_s,
            "longest_reconcile_s": max(self.oldest_s, default=None),
        }

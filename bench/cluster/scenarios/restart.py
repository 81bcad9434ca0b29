"""A fresh controller among many live jobs: how soon it has reconciled all, without a write."""

import asyncio
import datetime
import os
import time
from typing import ClassVar, Final

import attrs

from bench.cluster.audit import is_write
from bench.cluster.controller_metrics import Metrics, scrape
from bench.cluster.namespaces import LIMIT_S, namespace
from bench.cluster.operators import Operator, Program
from bench.cluster.scenario import Bench, Figures, loop_lag
from bench.cluster.scenarios.creation import create_jobs
from bench.process_usage import machine_idle_s, peak_rss_mb, rss_mb

_POLL_S: Final = 0.2
_WATCHED_S: Final = 5.0
# Longer than a status waits for more pods to start.
_STEADY_S: Final = 15.0
_IDLE_SHARE: Final = 0.7


@attrs.frozen
class Restart:
    """A number of live jobs, and the replicas of each."""

    jobs: int = 1000
    replicas: int = 10
    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        async with namespace(bench.server) as name:
            with program.run():
                await create_jobs(bench.server, name, self.jobs, self.replicas)
                await _steady(bench)
            mark, since = bench.audit.end(), time.monotonic()
            flags = ("--leader-elect", f"--leader-election-namespace={name}")
            with program.run(*flags, until_ready=False) as operator:
                reconciled_at = await self._reconciled_at(operator)
                until = time.monotonic()
                await asyncio.sleep(_WATCHED_S)
                leading_at = await _leading_at(bench, name)
                figures = {"rss_mb": rss_mb(operator.pid), "peak_mb": peak_rss_mb(operator.pid)}
            writes = [entry for entry in bench.audit.requests(mark) if is_write(entry)]
        return {
            "leading_s": leading_at - operator.started_at,
            # The metrics are up to a second old, so it may have been earlier by that.
            "reconciled_s": None if reconciled_at is None else reconciled_at - leading_at,
            "writes": float(len(writes)),
            **figures,
            **loop_lag(operator, since, until),
        }

    async def _reconciled_at(self, operator: Operator) -> float | None:
        """Return the time since the epoch when all jobs had been reconciled, and nothing waited."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            try:
                metrics = await scrape(operator.url)
            except OSError:
                metrics = Metrics(())
            if has_reconciled(metrics, self.jobs):
                return time.time()
            await asyncio.sleep(_POLL_S)
        return None


def has_reconciled(metrics: Metrics, jobs: int) -> bool:
    """Return whether this many reconciles have finished and no key waits or is processed."""
    unfinished = metrics.total("workqueue_depth")
    unfinished += metrics.total("controller_runtime_active_workers")
    return metrics.total("controller_runtime_reconcile_total") >= jobs and not unfinished


async def _steady(bench: Bench) -> None:
    """Wait until the operator has written nothing for a while, and the control plane is idle.

    It works on the endpoints of the last pods for minutes.
    """
    async with asyncio.timeout(LIMIT_S):
        idle_share, writes = 0.0, True
        while writes or idle_share < _IDLE_SHARE:
            mark, idle_before_s = bench.audit.end(), machine_idle_s()
            await asyncio.sleep(_STEADY_S)
            idle_share = (machine_idle_s() - idle_before_s) / _STEADY_S / (os.cpu_count() or 1)
            writes = any(map(is_write, bench.audit.requests(mark)))


async def _leading_at(bench: Bench, name: str) -> float:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/dlctl"
    _, lease = await bench.server.get(path)
    return datetime.datetime.fromisoformat(lease["spec"]["acquireTime"]).timestamp()

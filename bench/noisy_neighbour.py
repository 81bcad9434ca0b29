"""A quiet namespace beside a hostile one: what its jobs notice, and what the controller does.

The controller is the real program with default settings, in its own process. This process holds the
embedded API server, a node and launchers that only report. Each hostile load gets a new cluster and
controller; the last run has all loads at once. ``python -m bench.noisy_neighbour`` fails if a goal
is missed; arguments select loads by the beginning of their names.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs

from bench import process_usage
from bench.controller_process import Controller, controller, quantile_s
from bench.hostile_loads import HOSTILE, LOADS, BenchCluster, EndlessLaunchers, Load
from bench.tables import Figure, show
from dlctl.api.meta import PODS, ObjectKey
from dlctl.dialects.et_operator.resources import SCALE_OUTS
from dlctl.local.apiserver.server import ApiServer
from e2e.cluster.addresses import free_port
from tests.builders import kind_of
from tests.dialects.et_operator.manifests import elastic_job, scale_out
from tests.support.harness import start_cluster

QUIET: Final = "quiet"
TURNS: Final = 3
# Longer waits are cut off and count as this long.
LIMIT_S: Final = 10.0
# Noise of a machine with two cores.
SLACK_S: Final = 0.1
GOAL_RATIO: Final = 2.0
GOAL_LAG_S: Final = 0.05
GOAL_MB: Final = 300.0
SHARE: Final = 0.999
# The loop is observed for at least this long.
WATCHED_S: Final = 8.0
_LOOK_S: Final = 0.005
_JOBS: Final = kind_of("kai.alibabacloud.com/v1alpha1", "TrainingJob").resource


@attrs.frozen
class Measurement:
    """Times of the quiet jobs, in seconds, and the costs of the controller."""

    pods_s: Sequence[float]
    scaled_s: Sequence[float]
    lag_s: float
    own_lag_s: float
    peak_mb: float
    cpu_share: float
    lives: bool


async def measure(loads: Sequence[Load]) -> Measurement:
    """Run a controller with these loads, and quiet jobs one after the other beside them."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(start_cluster(window=200_000))
        server = cluster.server
        assert isinstance(server, ApiServer)
        stage = BenchCluster(cluster, server, EndlessLaunchers(server, cluster.clock))
        for name in (HOSTILE, QUIET):
            stage.namespace(name)
        for load in loads:
            await load.preload(stage)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "kubeconfig").write_text(json.dumps(server.kubeconfig()))
        address = f"127.0.0.1:{free_port()}"
        arguments = [f"--kubeconfig={folder / 'kubeconfig'}", f"--bind-address={address}"]
        arguments += ["--leader-election-namespace=default"]
        process = stack.enter_context(controller(folder, arguments))
        stage.metrics_url = f"http://{address}/metrics"
        await _ready(f"http://{address}/readyz", process)
        try:
            return await _beside(stage, process, loads)
        finally:
            if not process.runs:
                print((folder / "log").read_text()[-1500:])


async def _beside(stage: BenchCluster, process: Controller, loads: Sequence[Load]) -> Measurement:
    pid = process.process.pid
    started, cpu_s = time.monotonic(), process_usage.cpu_s(pid)
    pods_s: list[float] = []
    scaled_s: list[float] = []
    async with asyncio.TaskGroup() as group:
        for load in loads:
            await load.prepare(stage)
        going_on = [group.create_task(load.run(stage)) for load in loads]
        for turn in range(TURNS):
            if process.runs and LIMIT_S > max([*pods_s, *scaled_s], default=0.0):
                pods_s.append(await _pods_s(stage, turn))
                scaled_s.append(await _scaled_s(stage, turn))
        await asyncio.sleep(max(0.0, started + WATCHED_S - time.monotonic()))
        for task in going_on:
            task.cancel()
    lasted_s = time.monotonic() - started
    late = process.late(started)
    lives = process.runs
    return Measurement(
        pods_s or [LIMIT_S],
        scaled_s or [LIMIT_S],
        quantile_s((one.wall_s for one in late), lasted_s, SHARE),
        quantile_s((one.own_s for one in late), lasted_s, SHARE),
        process_usage.peak_rss_mb(pid) if lives else 0.0,
        (process_usage.cpu_s(pid) - cpu_s) / lasted_s if lives else 0.0,
        lives,
    )


async def _pods_s(stage: BenchCluster, turn: int) -> float:
    """Return the seconds until a new job has its pods: workers, and when they run the launcher."""
    started = time.monotonic()
    job = elastic_job(name=f"quiet-{turn}", worker={"replicas": 3})
    await stage.create(_JOBS, QUIET, job)

    def there() -> bool:
        return stage.server.storage.get(PODS, ObjectKey(QUIET, launcher)) is not None

    launcher = f"quiet-{turn}-launcher"
    return await _passed_s(started, there)


async def _scaled_s(stage: BenchCluster, turn: int) -> float:
    """Return the seconds until it has a worker more, which its launcher was given."""
    name = f"quiet-{turn}"
    await stage.until(lambda: stage.running(QUIET, name), LIMIT_S)
    started = time.monotonic()
    scaler = scale_out(selector={"name": name}, toAdd={"count": 1})
    scaler["metadata"]["name"] = name
    await stage.create(SCALE_OUTS, QUIET, scaler)

    def succeeded() -> bool:
        stored = stage.server.storage.get(SCALE_OUTS, ObjectKey(QUIET, name))
        status = stored.decoded(SCALE_OUTS).get("status", {}) if stored else {}
        return bool(status.get("phase") == "ScaleSucceeded")

    return await _passed_s(started, succeeded)


async def _passed_s(started: float, holds: Any) -> float:
    with suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_S):
            while not holds():  # noqa: ASYNC110 - it is looked at, not signalled.
                await asyncio.sleep(_LOOK_S)
    return time.monotonic() - started


async def _ready(url: str, process: Controller) -> None:
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while process.runs:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as response:
                    if response.ok:
                        return
            await asyncio.sleep(_LOOK_S)


def compare_to_goals(found: Measurement, alone: Measurement | None) -> list[Figure]:
    """Return the figures beside their goals, which follow from those of the quiet jobs alone."""
    lag, own = found.lag_s * 1000, found.own_lag_s * 1000
    return [
        _beside_alone("a quiet job's pods", found.pods_s, alone.pods_s if alone else None),
        _beside_alone("a worker more for it", found.scaled_s, alone.scaled_s if alone else None),
        Figure("event-loop lag, p99.9", f"{lag:.0f} ms"),
        Figure(
            "  of that its own work",
            f"{own:.0f} ms",
            f"<= {GOAL_LAG_S * 1000:.0f} ms",
            found.own_lag_s <= GOAL_LAG_S,
        ),
        Figure(
            "memory at most",
            f"{found.peak_mb:.0f} MB",
            f"<= {GOAL_MB:.0f} MB",
            found.lives and found.peak_mb <= GOAL_MB,
        ),
        Figure("of a core", f"{found.cpu_share:.0%}"),
        Figure("restarts", "0" if found.lives else "1", "0", found.lives),
    ]


def _beside_alone(name: str, seconds: Sequence[float], alone: Sequence[float] | None) -> Figure:
    value = statistics.median(seconds)
    if alone is None:
        return Figure(name, f"{value:.2f} s")
    goal_s = GOAL_RATIO * statistics.median(alone) + SLACK_S
    return Figure(name, f"{value:.2f} s", f"<= {goal_s:.2f} s", value <= goal_s)


async def main(names: Sequence[str]) -> bool:
    alone = await measure([])
    good = show("The quiet jobs alone", compare_to_goals(alone, None))
    chosen = [load for load in LOADS if not names or load.name.startswith(tuple(names))]
    for load in chosen:
        good &= show(f"Beside {load.name}", compare_to_goals(await measure([load]), alone))
    if len(chosen) > 1:
        good &= show("Beside all of them", compare_to_goals(await measure(chosen), alone))
    return good


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(sys.argv[1:])) else 1)

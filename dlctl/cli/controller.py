"""``dlctl controller``: the operator, against the cluster of a kubeconfig or the one it runs in."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from dlctl import logs
from dlctl.api.defaults import job_defaults
from dlctl.cli.frameworks import report
from dlctl.cli.gang_scheduling import check_pod_groups
from dlctl.cli.schemes import enabled
from dlctl.cli.settings import add_settings, settings
from dlctl.cli.their_flags import without_effect
from dlctl.dialects.kinds import Kind, kinds
from dlctl.frameworks.kubeflow import pytorch_init
from dlctl.frameworks.registry import registry
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.kube.pace import TokenBucket
from dlctl.leaderelection.election import Election
from dlctl.leaderelection.leadership import Leadership, Unelected
from dlctl.leaderelection.timing import Timing
from dlctl.manager import Manager
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.probes.access import Access, ReviewedAccess, anybody
from dlctl.probes.server import Health, serving

logger = logging.getLogger(__name__)

# Python's own value is five times this.
_SWITCH_S: Final = 0.001
_COLLECTED: Final = (50_000, 10, 50)


def configure(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    options = settings(args, os.environ)
    timing = _timing(options)
    defaults = job_defaults(options)
    pytorch_init.check(defaults)
    logs.set_up(sys.stderr, level=options.log_level, format_=logs.LogFormat(options.log_format))
    found = registry()
    report(found)
    served = enabled(kinds(found.frameworks, defaults), options.enable_scheme)
    for name, reason in without_effect(args, options):
        logger.warning("flag has no effect", extra={"flag": name, "reason": reason})
    try:
        _favour_the_loop()
        asyncio.run(_serve(options, timing, served, list(found.broken)))
    except asyncio.CancelledError:
        # Told twice to stop. The work was left where it was; whoever leads next goes on with it.
        return 1
    return 0


def _favour_the_loop() -> None:
    # While a thread plans a large job, the event loop waits this long for each of its turns.
    sys.setswitchinterval(_SWITCH_S)
    # A full collection stops all for as long as the stores are large. What they hold has no cycles.
    gc.set_threshold(*_COLLECTED)


async def _serve(
    options: Options, timing: Timing, served: Sequence[Kind], broken: Sequence[str]
) -> None:
    metrics = Metrics()
    for framework in broken:
        metrics.dlctl_broken_frameworks.labels(framework).set(1)
    connect = partial(config.load, options.kubeconfig or None, options.context or None)
    leadership = _leadership(options, timing, connect, metrics)
    cluster = await connect()
    async with AsyncExitStack() as stack:
        limit = TokenBucket.of(options.kube_api_qps, options.kube_api_burst)
        client = Client(cluster, metrics=metrics, may_write=leadership.may_write, limit=limit)
        await stack.enter_async_context(client)
        await check_pod_groups(client, job_defaults(options).gang_scheduler)
        manager = Manager(client, served, options, metrics, leadership=leadership)
        access: Access = anybody
        if options.metrics_authentication:
            # Not the client of the work, which must not write unless this process leads.
            reviewer = Client(cluster, user_agent="dlctl/metrics", metrics=metrics, limit=limit)
            access = ReviewedAccess(await stack.enter_async_context(reviewer))
        health = Health(live={"leadership": leadership.healthy}, ready=manager.checks())
        for address in filter(None, sorted({options.metrics_at, options.health_at})):
            shown = metrics.registry if address == options.metrics_at else None
            probed = health if address == options.health_at else None
            await stack.enter_async_context(serving(address, shown, probed, access))
        # Modules are most of the heap. Looking for garbage in them stops the loop for 0.1 s.
        gc.collect()
        gc.freeze()
        await _until_signalled(manager)


def _timing(options: Options) -> Timing:
    return Timing(
        lease_s=options.leader_elect_lease_duration_s,
        renew_s=options.leader_elect_renew_deadline_s,
        retry_s=options.leader_elect_retry_period_s,
        stall_s=options.leader_elect_stall_timeout_s,
    )


def _leadership(
    options: Options,
    timing: Timing,
    connect: Callable[[], Awaitable[config.ClusterConfig]],
    metrics: Metrics,
) -> Leadership:
    if not options.leader_elect:
        return Unelected()
    return Election(
        connect,
        options.leader_election_id,
        namespace=options.leader_election_namespace,
        timing=timing,
        metrics=metrics,
    )


async def _until_signalled(manager: Manager) -> None:
    """Run until SIGTERM or SIGINT, which lets work finish; a second one stops at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()

    def stopped() -> None:
        if stop.is_set() and running is not None:
            running.cancel()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped)
    try:
        await manager.run(stop)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

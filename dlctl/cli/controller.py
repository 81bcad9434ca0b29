"""``dlctl controller``: run the operator against a kubeconfig's cluster, or in-cluster."""

import argparse
import asyncio
import gc
import linecache
import logging
import os
import signal
import sys
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from dlctl import logs
from dlctl.cli.gang_scheduling import check_pod_groups
from dlctl.cli.installed_kinds import log_load_errors
from dlctl.cli.settings.compat_flags import ineffective_flags
from dlctl.cli.settings.job_defaults import job_defaults
from dlctl.cli.settings.schemes import enabled
from dlctl.cli.settings.sources import add_settings, load_settings
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.kubeflow import pytorch_init
from dlctl.frameworks.registry import load_frameworks
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.kube.flowcontrol.rate_limiter import RateLimiter
from dlctl.leaderelection.election import Election
from dlctl.leaderelection.leadership import Leadership, NoLeaderElection
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.manager import Manager
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.probes.authorization import Authorize, DelegatedAuthorization, allow_all
from dlctl.probes.exposition import exposition
from dlctl.probes.server import Health, serving

logger = logging.getLogger(__name__)

# Python's default is five times this.
_SWITCH_INTERVAL_S: Final = 0.001
_GC_THRESHOLD: Final = (50_000, 10, 50)
# A quarter of asyncio's default.
_READ_BUFFER_BYTES: Final = 64 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the operator against a cluster."
    add_settings(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    options = load_settings(args, os.environ)
    timing = _timing(options)
    defaults = job_defaults(options)
    pytorch_init.check_template(defaults.of_framework(pytorch_init.PyTorchInit))
    logs.configure(sys.stderr, level=options.log_level, format_=logs.LogFormat(options.log_format))
    found = load_frameworks()
    log_load_errors(found)
    served = enabled(served_kinds(found.frameworks, defaults), options.enable_scheme)
    for name, reason in ineffective_flags(args, options):
        logger.warning("flag has no effect", extra={"flag": name, "reason": reason})
    try:
        _tune_process()
        asyncio.run(_serve(options, timing, served, list(found.error_by_entry_point)))
    except asyncio.CancelledError:
        # A second signal arrived: reconciles were cancelled, and the next leader resumes them.
        return 1
    return 0


def _tune_process() -> None:
    # While a thread plans a large job, the event loop waits this long for the interpreter lock.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # Large stores make a full collection slow, and their objects have no cycles.
    gc.set_threshold(*_GC_THRESHOLD)
    # Each connection keeps its buffer, and most are watches in which little happens.
    sslproto.SSLProtocol.max_size = _READ_BUFFER_BYTES


async def _serve(
    options: Options, timing: LeaseTiming, served: Sequence[Kind], broken: Sequence[str]
) -> None:
    metrics = Metrics()
    for framework in broken:
        metrics.dlctl_framework_load_errors.labels(framework).set(1)
    connect = partial(config.load, options.kubeconfig or None, options.context or None)
    leadership = _leadership(options, timing, connect, metrics)
    cluster = await connect()
    async with AsyncExitStack() as stack:
        limit = RateLimiter.from_settings(options.kube_api_qps, options.kube_api_burst)
        client = Client(
            cluster, metrics=metrics, may_write=leadership.may_write, rate_limiter=limit
        )
        await stack.enter_async_context(client)
        await check_pod_groups(client, job_defaults(options).gang_scheduler_name)
        manager = Manager(client, served, options, metrics, leadership=leadership)
        access: Authorize = allow_all
        if options.metrics_authentication:
            # A client of its own: the reconcilers' client must not write unless this process leads.
            reviewer = Client(
                cluster, user_agent="dlctl/metrics", metrics=metrics, rate_limiter=limit
            )
            access = DelegatedAuthorization(await stack.enter_async_context(reviewer))
        health = Health(live={"leadership": leadership.healthy}, ready=manager.readiness_checks())
        render = partial(exposition, metrics.registry)
        for address in filter(None, sorted({options.metrics_address, options.health_address})):
            shown = render if address == options.metrics_address else None
            probed = health if address == options.health_address else None
            await stack.enter_async_context(serving(address, shown, probed, access))
        # attrs keeps the source of the methods that it generates, for debuggers.
        linecache.clearcache()
        # Modules are most of the heap; scanning them for garbage blocks the loop for 0.1 s.
        gc.collect()
        gc.freeze()
        await _until_signalled(manager)


def _timing(options: Options) -> LeaseTiming:
    return LeaseTiming(
        lease_s=options.leader_elect_lease_duration_s,
        renew_s=options.leader_elect_renew_deadline_s,
        retry_s=options.leader_elect_retry_period_s,
        stall_s=options.leader_elect_stall_timeout_s,
    )


def _leadership(
    options: Options,
    timing: LeaseTiming,
    connect: Callable[[], Awaitable[config.ClusterConfig]],
    metrics: Metrics,
) -> Leadership:
    if not options.leader_elect:
        return NoLeaderElection()
    return Election(
        connect,
        options.leader_election_id,
        namespace=options.leader_election_namespace,
        timing=timing,
        metrics=metrics,
    )


async def _until_signalled(manager: Manager) -> None:
    """Run until SIGTERM or SIGINT, then finish reconciles; a second signal stops at once."""
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

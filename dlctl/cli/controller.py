"""``dlctl controller``: the operator, against the cluster of a kubeconfig or the one it runs in."""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack

from dlctl import logs, probes
from dlctl.cli.settings import add_settings, settings
from dlctl.dialects.kinds import kinds
from dlctl.frameworks.registry import installed
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.manager import Manager
from dlctl.metrics import Metrics
from dlctl.options import Options


def configure(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    options = settings(args, os.environ)
    logs.set_up(sys.stderr, level=options.log_level, format_=logs.LogFormat(options.log_format))
    asyncio.run(_serve(options))
    return 0


async def _serve(options: Options) -> None:
    metrics = Metrics()
    served = kinds(installed())
    cluster = await config.load(options.kubeconfig or None, options.context or None)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(cluster, metrics=metrics))
        manager = Manager(client, served, options, metrics)
        if options.bind_address:
            ready = probes.serving(options.bind_address, metrics.registry, lambda: manager.synced)
            await stack.enter_async_context(ready)
        await _until_signalled(manager)


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

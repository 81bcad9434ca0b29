"""A process that writes while it leads; run as a module, with its settings as a JSON object.

It prints "leading" when it does. A number on its stdin blocks it for that many seconds, "suspend"
suspends it until it is resumed by a signal, and the end of its stdin stops it.
"""

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any, Final

from dlctl.api.meta import CONFIG_MAPS
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.leaderelection.election import Election
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.watchdog import ProcessWatchdog

# When the loop stops, some wait for a response and some for the time of their next write.
WRITERS: Final = 6


class InertWatchdog(ProcessWatchdog):
    """A watchdog that does nothing, to test the write fence alone."""

    def arm(self, seconds: float) -> None:
        """Do nothing."""


async def contend(settings: dict[str, Any]) -> None:
    config = ClusterConfig.with_token(settings["url"], settings["token"])

    async def connect() -> ClusterConfig:
        return ClusterConfig.with_token(settings["url"], settings["token"])

    watchdog = ProcessWatchdog() if settings["watchdog"] else InertWatchdog()
    timing = LeaseTiming(**settings["timing"])
    election = Election(
        connect, "dlctl", timing=timing, watchdog=watchdog, identity=settings["name"]
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        line = sys.stdin.readline().strip()
        if line == "suspend":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif line:
            time.sleep(float(line))
        else:
            stop.set()

    loop.add_reader(sys.stdin, told)
    client = Client(config, user_agent=settings["name"], may_write=election.may_write)
    async with client, election.leading(stop) as leading:
        if leading:
            sys.stdout.write("leading\n")
            sys.stdout.flush()
            async with asyncio.TaskGroup() as group:
                for number in range(WRITERS):
                    group.create_task(write(client, f"{settings['name']}-{number}", stop))


async def write(client: Client, prefix: str, stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        try:
            await client.create(
                CONFIG_MAPS, "default", {"metadata": {"name": f"{prefix}-{number}"}}
            )
        except DlctlError:
            pass
        await asyncio.sleep(0.02 * (number % 2))


if __name__ == "__main__":
    try:
        asyncio.run(contend(json.loads(sys.argv[1])))
    except DlctlError as error:
        sys.exit(str(error))

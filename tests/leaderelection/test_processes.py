"""Whole processes that lead, die and hang: which of them wrote, and when."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from dlctl.api.meta import CONFIG_MAPS
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer, serve
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.leaderelection.lease_server import LEASE_PATH, stored_lease

pytestmark = pytest.mark.slow

TIMING = {"lease_s": 2.0, "renew_s": 1.0, "retry_s": 0.2, "stall_s": 1.0}
_CONFIG_MAPS = table_of(CONFIG_MAPS)


@attrs.define
class Writes:
    """The first and last write of each process, from a watch."""

    first: dict[str, float] = attrs.field(factory=dict)
    last: dict[str, float] = attrs.field(factory=dict)
    noticed: asyncio.Event = attrs.field(factory=asyncio.Event)

    def notice(self, change: StorageEvent) -> None:
        if change.table == _CONFIG_MAPS and change.new:
            name = change.new.key.name.split("-")[0]
            self.first.setdefault(name, time.monotonic())
            self.last[name] = time.monotonic()
            self.noticed.set()
            self.noticed.clear()


@attrs.define
class Contender:
    """A contender process."""

    name: str
    process: asyncio.subprocess.Process

    async def send(self, what: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{what}\n".encode())
        await self.process.stdin.drain()

    async def ends(self, *, within_s: float) -> int:
        async with asyncio.timeout(within_s):
            return await self.process.wait()


@attrs.define
class ContenderGroup:
    """A server and the processes that contend for a lease on it."""

    server: ApiServer
    group: asyncio.TaskGroup
    writes: Writes = attrs.field(factory=Writes)
    announced: "asyncio.Queue[str]" = attrs.field(factory=asyncio.Queue)
    contenders: list[Contender] = attrs.field(factory=list)

    async def start(self, name: str, *, watchdog: bool = True) -> Contender:
        settings: dict[str, Any] = {
            "url": self.server.url,
            "token": self.server.token,
            "name": name,
            "timing": TIMING,
            "watchdog": watchdog,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.leaderelection.contender", json.dumps(settings)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        contender = Contender(name, process)
        self.contenders.append(contender)
        self.group.create_task(self._listen(contender))
        return contender

    async def _listen(self, contender: Contender) -> None:
        assert contender.process.stdout
        async for line in contender.process.stdout:
            assert line == b"leading\n"
            self.announced.put_nowait(contender.name)

    async def leader(self) -> Contender:
        """Return the next process that prints that it leads."""
        name = await self.announced.get()
        return next(contender for contender in self.contenders if contender.name == name)

    async def wrote(self, contender: Contender) -> float:
        """Wait until it has written, and return the time."""
        while contender.name not in self.writes.first:
            await self.writes.noticed.wait()
        return self.writes.first[contender.name]

    def keep_from_renewing(self) -> None:
        """Delay all lease requests, and nothing else."""
        self.server.faults.add(Fault(verb="update", resource=LEASE_PATH, delay_s=60, times=None))

    @property
    def holder(self) -> str:
        return str(stored_lease(self.server).get("spec", {}).get("holderIdentity") or "")


@asynccontextmanager
async def contender_group() -> AsyncIterator[ContenderGroup]:
    async with serve(tls=False) as server, asyncio.TaskGroup() as group:
        arena = ContenderGroup(server, group)
        server.storage.observers.append(arena.writes.notice)
        try:
            yield arena
        finally:
            for contender in arena.contenders:
                if contender.process.returncode is None:
                    contender.process.kill()
                    await contender.process.wait()


async def test_killed_leader_is_succeeded_by_one_that_hands_over_gracefully() -> None:
    async with contender_group() as arena:
        for name in ("first", "second", "third"):
            await arena.start(name)
        killed = await arena.leader()
        await arena.wrote(killed)
        killed.process.kill()
        began = time.monotonic()
        stopped = await arena.leader()
        assert time.monotonic() - began < TIMING["lease_s"] + 2
        assert arena.writes.last[killed.name] < await arena.wrote(stopped)

        assert stopped.process.stdin
        stopped.process.stdin.close()
        began = time.monotonic()
        last = await arena.leader()
        assert time.monotonic() - began < 3
        assert await stopped.ends(within_s=5) == 0
        assert arena.writes.last[stopped.name] < await arena.wrote(last)


async def test_hanging_process_that_cannot_renew_ends_and_writes_no_more() -> None:
    async with contender_group() as arena:
        first = await arena.start("first")
        await arena.wrote(first)
        arena.keep_from_renewing()
        told = time.monotonic()
        await first.send("60")
        assert await first.ends(within_s=5) == 1
        assert time.monotonic() - told < TIMING["lease_s"]
        assert arena.writes.last["first"] - told < TIMING["renew_s"]
        assert arena.holder == "first"


async def test_event_loop_resuming_past_the_deadline_writes_nothing() -> None:
    """Without the watchdog: the write fence must suffice."""
    async with contender_group() as arena:
        first = await arena.start("first", watchdog=False)
        await arena.wrote(first)
        arena.keep_from_renewing()
        told = time.monotonic()
        await first.send("1.3")
        assert await first.ends(within_s=5) == 1
        assert time.monotonic() - told > 1.3
        assert arena.writes.last["first"] - told < 1.2


async def test_leader_with_a_hanging_event_loop_exits_even_if_it_could_renew() -> None:
    async with contender_group() as arena:
        first = await arena.start("first")
        await arena.wrote(first)
        told = time.monotonic()
        await first.send("60")
        assert await first.ends(within_s=5) == 1
        assert time.monotonic() - told > TIMING["stall_s"]


async def test_process_suspended_past_its_lease_writes_nothing_when_resumed() -> None:
    async with contender_group() as arena:
        for name in ("first", "second"):
            await arena.start(name)
        stopped = await arena.leader()
        await arena.wrote(stopped)
        # By itself: a signal could come between the check of a write and its socket.
        await stopped.send("suspend")
        began = await arena.wrote(await arena.leader())
        stopped.process.send_signal(signal.SIGCONT)
        # Threads that run again while their stacks are read may crash it: that ends it as well.
        assert await stopped.ends(within_s=5) in (1, -signal.SIGSEGV)
        assert arena.writes.last[stopped.name] < began

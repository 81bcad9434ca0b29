"""A server in a thread of its own: it answers while the loop of the test is blocked."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from dlctl.local.apiserver.server import ApiServer, serve


@contextmanager
def serve_in_thread() -> Iterator[ApiServer]:
    """Serve for the duration of the block; storage and faults may be looked at from outside."""
    started: Future[ApiServer] = Future()
    stopped: Future[None] = Future()
    stopped.set_running_or_notify_cancel()

    async def run() -> None:
        async with serve(tls=False) as server:
            started.set_result(server)
            await asyncio.wrap_future(stopped)

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="server")
    thread.start()
    try:
        yield started.result()
    finally:
        stopped.set_result(None)
        thread.join()

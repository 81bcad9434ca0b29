"""The output of a running container, as ``kubectl attach`` shows it: from now on, until it ends.

Programs here have no stdin, so what a client types is ignored, as a kubelet does then.
"""

import asyncio
from contextlib import suppress
from typing import Final

import msgspec
from aiohttp import web

from dlctl.local.apiserver.endpoints.log_requests import LogRequest, LogSource
from dlctl.local.apiserver.requests import UpgradeResponse
from dlctl.local.apiserver.status import StatusError

_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _ERROR = 1, 3


def attach_response(pod: LogRequest, source: LogSource) -> UpgradeResponse:
    """Return the WebSocket session that shows the output."""

    async def serve(socket: web.WebSocketResponse) -> None:
        end: dict[str, object] = {"metadata": {}, "status": "Success"}
        try:
            await _follow(socket, pod, source)
        except StatusError as error:
            end = error.body()
        with suppress(ConnectionError):
            await socket.send_bytes(bytes([_ERROR]) + msgspec.json.encode(end))

    return UpgradeResponse(_PROTOCOLS, serve)


async def _follow(socket: web.WebSocketResponse, pod: LogRequest, source: LogSource) -> None:
    output = source(pod)

    async def send() -> None:
        with suppress(ConnectionError):
            async for chunk in output:
                await socket.send_bytes(bytes([_STDOUT]) + chunk)

    async def ignore_input() -> None:
        async for _ in socket:
            pass

    tasks = [asyncio.ensure_future(send()), asyncio.ensure_future(ignore_input())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

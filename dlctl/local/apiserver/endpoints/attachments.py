"""The output of a running container, as ``kubectl attach`` shows it: from now on, until it ends.

Programs here have no stdin, so what a client types is ignored, as a kubelet does then.
"""

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from dlctl.local.apiserver.endpoints.execs import stream_names
from dlctl.local.apiserver.endpoints.log_requests import LogRequest, LogSource
from dlctl.local.apiserver.requests import UpgradeResponse
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.upgrades.channels import ERROR, STDOUT, Channels, channel_response
from dlctl.tasks import run_until_first


def attach_response(
    pod: LogRequest, streams: Mapping[str, bool], source: LogSource
) -> UpgradeResponse:
    """Return the session that shows the output."""

    async def hold(channels: Channels) -> None:
        end: dict[str, object] = {"metadata": {}, "status": "Success"}
        try:
            await _follow(channels, pod, source)
        except StatusError as error:
            end = error.body()
        with suppress(ConnectionError):
            await channels.send(ERROR, msgspec.json.encode(end))

    return channel_response(hold, stream_names(streams))


async def _follow(channels: Channels, pod: LogRequest, source: LogSource) -> None:
    output = source(pod)

    async def send() -> None:
        with suppress(ConnectionError):
            async for chunk in output:
                await channels.send(STDOUT, chunk)

    async def ignore_input() -> None:
        async for _ in channels.messages():
            pass

    await run_until_first(send(), ignore_input())

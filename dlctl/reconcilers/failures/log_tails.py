"""Reads the ends of failed runs' logs: 64 KiB each, whatever their programs have written."""

import asyncio
import zlib
from typing import Final

import attrs

from dlctl.api.meta import PODS, Object, ObjectKey
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.reconcilers.failures.log_requests import LogTailRequest
from dlctl.reconcilers.failures.tail_cache import TailCache

READ_TIMEOUT_S: Final = 5.0
MAX_TAIL_BYTES: Final = 64 * 1024
# A server counts lines from the end but bytes from the first of them, so it is asked for fewer
# lines if they are too long. Container runtimes split lines at 16 KiB: then they always fit.
_MAX_READ_BYTES: Final = 1024 * 1024
_LINE_COUNTS: Final = (500, 60)


class PodReplacedError(DlctlError):
    """Another pod has the name of the one whose log is requested."""


class LogTimeoutError(DlctlError):
    """The log was not read in time."""


@attrs.frozen
class LogTailReader:
    """Reads logs for the jobs of all kinds."""

    client: Client
    # Shared by all kinds; many tails wait for their job to run again.
    cache: TailCache

    async def read(self, _: ObjectKey, request: LogTailRequest) -> None:
        """Put the end of a run's log into the cache, compressed.

        :raises DlctlError: if it cannot be read.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                tail: bytes | None = None
                for line_count in _LINE_COUNTS:
                    tail = await self._tail(request, line_count)
                    if tail is not None:
                        break
        except TimeoutError as error:
            text = f"the log of {request.pod} was not read within {READ_TIMEOUT_S:g} s"
            raise LogTimeoutError(text) from error
        await self._check_uid(request)
        self.cache.put(request, zlib.compress(tail or b"", level=1))

    async def _check_uid(self, request: LogTailRequest) -> None:
        """Raise PodReplacedError if the log is that of another pod: requests take no UID."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                pod = await self.client.get(PODS, request.pod, Object)
        except (DlctlError, TimeoutError):
            # Replacements are rare: a log that was read is worth more than the certainty.
            return
        if pod.metadata.uid != request.uid:
            raise PodReplacedError(f"another pod is named {request.pod}")

    async def _tail(self, request: LogTailRequest, line_count: int) -> bytes | None:
        """Return the end of the last lines; None if they are too long to be read to their end."""
        params = {
            "container": request.container,
            "tailLines": str(line_count),
            "limitBytes": str(_MAX_READ_BYTES),
            **({"previous": "true"} if request.is_previous else {}),
        }
        path = PODS.path(request.pod.namespace, request.pod.name, "log")
        tail, read_count = b"", 0
        async with self.client.stream(path, params) as chunks:
            async for chunk in chunks:
                read_count += len(chunk)
                if read_count >= _MAX_READ_BYTES:
                    return None
                tail = (tail + chunk)[-MAX_TAIL_BYTES:]
        return tail


def text_of(tail: bytes) -> str:
    """Return a tail as text; a tenant's bytes may not be UTF-8."""
    return zlib.decompress(tail).decode(errors="replace")

"""The real kubectl against one server."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import yaml

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.server import ApiServer

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")


@attrs.frozen
class Kubectl:
    """Runs kubectl against one server."""

    server: ApiServer
    environment: dict[str, str]

    async def __call__(self, *args: str, stdin: JSON | None = None, code: int = 0) -> str:
        """Return all that kubectl printed; its exit code must be the given one."""
        async with self.started(*args) as process:
            sent = yaml.safe_dump(stdin).encode() if stdin else None
            async with asyncio.timeout(20):
                out, _ = await process.communicate(sent)
        text = out.decode()
        assert process.returncode == code, text
        return text

    @asynccontextmanager
    async def started(self, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *args,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def apply(self, *objects: JSON) -> None:
        for obj in objects:
            await self("apply", "-f", "-", stdin=obj)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]

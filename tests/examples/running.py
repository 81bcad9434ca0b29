"""Shared by the tests of the examples: requirements and output of an example.

Frameworks are looked for in environments ``.venv-<name>`` beside the sources, or among Debian's own
packages; what is not there is skipped.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import attrs
import pytest

from dlctl.api.meta import PODS
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane
from dlctl.kube.errors import ApiError

PROJECT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 120


@attrs.frozen
class Example:
    """A manifest, what it needs, and what one of its replicas says in the end."""

    manifest: str
    module: str
    says: str = "learned y = "
    # Debian's packages are where the machine's own programs are.
    debian: bool = False
    program: str = "sh"

    @property
    def framework(self) -> str:
        return self.manifest.partition("/")[0]

    @property
    def prefix(self) -> Path:
        return Path("/usr") if self.debian else PROJECT / f".venv-{self.framework}"

    def missing(self) -> str:
        """Return why it cannot run here, or an empty string."""
        if shutil.which(self.program) is None:
            return f"{self.program} is not on PATH"
        python = self.prefix / "bin" / "python3"
        found = f"from importlib.util import find_spec as f; exit(not f({self.module!r}))"
        command = [str(python), "-c", found]
        if python.exists() and not subprocess.run(command, check=False).returncode:
            return ""
        return f"{self.module} is not in {self.prefix}: see examples/{self.manifest}"


def need(example: Example) -> None:
    if reason := example.missing():
        pytest.skip(reason)


async def until(holds: Callable[[], Awaitable[object]], *, within_s: float = LIMIT_S) -> None:
    async with asyncio.timeout(within_s):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.5)


async def log(running: EmbeddedControlPlane, pod: str) -> str:
    """Return the output of a pod so far; empty before it starts."""
    try:
        return (await running.client.get_raw(PODS.path("default", pod, "log"), {})).decode()
    except ApiError:
        return ""

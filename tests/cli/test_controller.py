import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from dlctl.local.apiserver.server import serve


@asynccontextmanager
async def controller(tmp_path: Path, *arguments: str) -> AsyncIterator[Process]:
    """Run a controller of its own process, from the moment that it works."""
    async with serve(tls=False) as server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
        command = ("-m", "dlctl", "controller", "--kubeconfig", str(kubeconfig), *arguments)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DLCTL_")}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stderr=PIPE, env=environment
        )
        assert process.stderr is not None
        try:
            async for line in process.stderr:
                if b"leading" in line:
                    break
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def finished(process: Process) -> tuple[int | None, str]:
    _, said = await process.communicate()
    return process.returncode, said.decode()


@pytest.mark.slow
async def test_one_signal_ends_it_in_order(tmp_path: Path) -> None:
    async with controller(tmp_path, "--bind-address=", "--leader-elect") as process:
        process.send_signal(signal.SIGTERM)
        code, said = await finished(process)
    assert code == 0, said
    assert "Traceback" not in said


@pytest.mark.slow
async def test_two_signals_end_it_at_once(tmp_path: Path) -> None:
    async with controller(tmp_path, "--bind-address=", "--leader-elect") as process:
        # Both are there when it goes on.
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            process.send_signal(number)
        code, said = await finished(process)
    assert code == 1, said
    assert "Traceback" not in said

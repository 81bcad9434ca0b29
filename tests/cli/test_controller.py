import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml

from dlctl.local.apiserver.server import serve
from e2e.cluster.addresses import free_ports

PROGRAM: Final = ("-m", "dlctl")
# On SIGUSR1, prints the sizes of the buffers that connections read into, and in another line how
# many files' source is in memory.
REPORTER: Final = """
import gc, linecache, signal
from asyncio.sslproto import SSLProtocol
from dlctl.__main__ import main

def report(*_):
    protocols = [each for each in gc.get_objects() if isinstance(each, SSLProtocol)]
    print(*(len(protocol.get_buffer(-1)) for protocol in protocols))
    print(len(linecache.cache), flush=True)

signal.signal(signal.SIGUSR1, report)
main()
"""


@asynccontextmanager
async def controller(
    tmp_path: Path, *arguments: str, program: Sequence[str] = PROGRAM, tls: bool = False
) -> AsyncIterator[Process]:
    """Run a controller of its own process, from the moment that it works."""
    async with serve(tls=tls) as server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
        command = (*program, "controller", "--kubeconfig", str(kubeconfig), *arguments)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DLCTL_")}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=PIPE, stderr=PIPE, env=environment
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
async def test_first_signal_shuts_it_down_gracefully(tmp_path: Path) -> None:
    async with controller(tmp_path, "--bind-address=", "--leader-elect") as process:
        process.send_signal(signal.SIGTERM)
        code, said = await finished(process)
    assert code == 0, said
    assert "Traceback" not in said


@pytest.mark.slow
async def test_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with controller(tmp_path, "--bind-address=", "--leader-elect") as process:
        # Both are pending when it continues.
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            process.send_signal(number)
        code, said = await finished(process)
    assert code == 1, said
    assert "Traceback" not in said


@pytest.mark.slow
async def test_arguments_of_training_operators_deployment_take_effect(tmp_path: Path) -> None:
    metrics, health = free_ports(2)
    arguments = (
        *("-metrics-bind-address", f"127.0.0.1:{metrics}", "--zap-devel"),
        *(f"--health-probe-bind-address=127.0.0.1:{health}", "--enable-scheme=MXJob"),
        *("--controller-threads=1", "--kube-api-qps=20", "--kube-api-burst=30", "--leader-elect"),
    )
    async with controller(tmp_path, *arguments) as process, aiohttp.ClientSession() as session:
        figures = await session.get(f"http://127.0.0.1:{metrics}/metrics")
        assert 'controller_runtime_max_concurrent_reconciles{controller="mxjobs' in (
            text := await figures.text()
        )
        assert 'controller="tfjobs' not in text
        assert "rest_client_rate_limiter_duration_seconds_count" in text
        assert (await session.get(f"http://127.0.0.1:{metrics}/healthz")).status == 404
        assert (await session.get(f"http://127.0.0.1:{health}/healthz")).status == 200
        process.send_signal(signal.SIGTERM)
        code, said = await finished(process)
    assert code == 0, said


async def report_of_idle_controller(tmp_path: Path) -> list[list[int]]:
    """Return the numbers that the reporter prints, by line."""
    arguments = ("--bind-address=", "--leader-elect")
    async with controller(tmp_path, *arguments, program=("-c", REPORTER), tls=True) as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGUSR1)
        lines = [await process.stdout.readline() for _ in range(2)]
    return [[int(number) for number in line.split()] for line in lines]


@pytest.mark.slow
async def test_idle_connections_keep_small_buffers(tmp_path: Path) -> None:
    sizes, _ = await report_of_idle_controller(tmp_path)
    assert sizes
    assert max(sizes) <= 64 * 1024


@pytest.mark.slow
async def test_idle_controller_keeps_no_source_of_generated_methods(tmp_path: Path) -> None:
    _, sources = await report_of_idle_controller(tmp_path)
    assert sources == [0]

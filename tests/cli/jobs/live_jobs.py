"""Jobs that run in the cluster of the tests, and waiting for what commands say about them."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlctl.api.meta import EVENTS
from dlctl.kube import config
from dlctl.kube.client import Client
from tests.builders import kind_of, training_job
from tests.support.command_line import Finished


def command_job(kind: str, name: str, script: str, **counts: int) -> dict[str, Any]:
    job = training_job(kind, name, **counts)
    job["metadata"] = {"name": name}
    for specs in job["spec"].values():
        for spec in specs.values():
            spec["restartPolicy"] = "Never"
            spec["template"]["spec"]["containers"][0]["command"] = ["python3", "-uc", script]
    return job


def create_jobs(kubeconfig: Path, *jobs: dict[str, Any]) -> None:
    async def create() -> None:
        async with Client(await config.load(str(kubeconfig))) as client:
            for job in jobs:
                resource = kind_of(job["apiVersion"], job["kind"]).resource
                await client.create(resource, "default", job)

    asyncio.run(create())


def create_event(kubeconfig: Path, job: str, message: str) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "forged", "namespace": "default"},
        "involvedObject": {"kind": "PyTorchJob", "name": job, "namespace": "default"},
        "type": "Warning",
        "reason": "Forged",
        "message": message,
    }

    async def create() -> None:
        async with Client(await config.load(str(kubeconfig))) as client:
            await client.create(EVENTS, "default", event)

    asyncio.run(create())


def until(run: Callable[[], Finished], *, out: str) -> Finished:
    deadline = time.monotonic() + 20
    while out not in (done := run()).out:
        assert time.monotonic() < deadline, done
        time.sleep(0.1)
    return done

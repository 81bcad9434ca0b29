"""What a background task does not inherit from the reconcile that wants it."""

import asyncio
from contextlib import nullcontext

import pytest

from dlctl import logs
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.kube.flowcontrol.write_limiter import WriteFlow, write_flow

pytestmark = pytest.mark.looptime


async def test_task_has_log_fields_of_its_own_and_writes_in_no_flow_of_a_reconcile() -> None:
    found: list[object] = []

    async def perform(owner: str, task: str) -> None:
        found.append((logs.current_fields(), write_flow.get()))

    tasks = BackgroundTasks[str, str](
        perform, lambda owner: None, controller="jobs", limiter=lambda *_: nullcontext()
    )

    async def reconcile() -> None:
        write_flow.set(WriteFlow(0.0))
        with logs.log_fields(controller="jobs", object="a", reconcile_id="1"):
            tasks.set_wanted("a", ["x"])
            await asyncio.sleep(1)
            tasks.retry("a", "x")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(tasks.run())
        await group.create_task(reconcile())
        await asyncio.sleep(1)
        running.cancel()
    assert found == [({"controller": "jobs", "object": "a", "task": "str"}, None)] * 2

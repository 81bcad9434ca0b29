"""A reconciler with scripted results, and a controller that runs it."""

import asyncio
from collections.abc import Awaitable, Callable

from dlctl.controller.controller import RESULTS, Controller, Result
from dlctl.metrics import Metrics

NAME = "mxjobs"


class ScriptedReconciler:
    """A reconciler that returns the given results in turn, then succeeds; it records its keys."""

    def __init__(self, *answers: Result | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> Result:
        self.seen.append((key, round(asyncio.get_running_loop().time(), 3)))
        answer = self.answers.pop(0) if self.answers else Result()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.seen]

    @property
    def times_s(self) -> list[float]:
        return [time for _, time in self.seen]


Make = Callable[[Callable[[str], Awaitable[Result]]], Controller[str]]


async def run_for(controller: Controller[str], seconds: float) -> None:
    """Run the controller for this long in loop time, then stop it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.run())
        await asyncio.sleep(seconds)
        await controller.stop(grace_s=10)


def count(metrics: Metrics, name: str, **labels: str) -> float:
    value = metrics.registry.get_sample_value(name, {"controller": NAME, **labels})
    assert value is not None, f"{name} does not exist yet"
    return value


def results(metrics: Metrics) -> dict[str, float]:
    name = "controller_runtime_reconcile_total"
    counts = {result: count(metrics, name, result=result) for result in RESULTS}
    return {result: number for result, number in counts.items() if number}

"""Only what a job's content causes is an error of the job."""

from collections.abc import Callable
from typing import TypeVar

import attrs
import pytest

from dlctl.reconcilers.job.desired_children import desired_children
from dlctl.reconcilers.large_jobs import threads
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, renderer_of, training_job

R = TypeVar("R")


@attrs.frozen
class ClosedThread:
    """Ends like the executor of an interpreter that exits."""

    async def run(self, namespace: str, function: Callable[[], R]) -> R:
        raise RuntimeError("cannot schedule new futures after shutdown")


async def test_thread_that_takes_no_more_work_is_no_error_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_PLANNER", ClosedThread())
    renderer = renderer_of(training_job("JAXJob", Worker=threads.MIN_COST_FOR_THREAD))
    observed = observe(renderer.job, Children(), NOW)
    with pytest.raises(RuntimeError, match="after shutdown"):
        await desired_children(renderer, observed, (), create_launcher=True)

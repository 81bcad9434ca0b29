"""The context of one reconciliation: the values from which its plan was made."""

from collections.abc import Callable
from typing import Self

import attrs

from dlctl.api.job import Job
from dlctl.api.status.job_status import JobStatus
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject
from dlctl.reconcilers.children.rejected_children import NameTaken, no_name_taken
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.events.pod_events import PodProblems
from dlctl.reconcilers.job.cache import JobCache


@attrs.frozen
class ReconcileContext:
    """The inputs for applying a plan."""

    job: Job
    obj: DecodedObject
    cache: JobCache
    renderer: Renderer
    # Why its pods do not run, as the events of the plan report; None if they report nothing of it.
    pod_problems: PodProblems | None = None
    # True if any of its pods has ever run.
    has_run: bool = False
    # Returns False once another plan is due: one may take long to apply.
    is_current: Callable[[], bool] = lambda: True
    # Returns whether a store shows an object of any owner under a name in the job's namespace.
    is_name_taken: NameTaken = no_name_taken

    @classmethod
    def of_status(cls, obj: DecodedObject, status: JobStatus, cache: JobCache) -> Self:
        """Return the context of a plan that writes only the status, whatever the spec."""
        job = lenient_reader.job_of_status(obj, status)
        return cls(job, obj, cache, Renderer(job, obj.dialect))

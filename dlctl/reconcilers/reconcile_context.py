"""One reconciliation of a job: the values that its plan was made from."""

from collections.abc import Sequence

import attrs

from dlctl.api.job import Job, JobObject
from dlctl.api.pods import Pod
from dlctl.dialects.dialect import Dialect
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.job_cache import JobCache


@attrs.frozen
class ReconcileContext:
    """What a plan is applied with."""

    job: Job
    obj: JobObject
    dialect: Dialect
    cache: JobCache
    renderer: Renderer
    # Those that the job owns, as the store has them.
    pods: Sequence[Pod]
    # Whether any of its pods has ever run.
    has_run: bool

"""The context of one reconciliation: the values from which its plan was made."""

from collections.abc import Sequence

import attrs

from dlctl.api.job import Job
from dlctl.api.pods import Pod
from dlctl.dialects.dialect import DecodedObject
from dlctl.reconcilers.children.render import Renderer
from dlctl.reconcilers.job_cache import JobCache


@attrs.frozen
class ReconcileContext:
    """The inputs for applying a plan."""

    job: Job
    obj: DecodedObject
    cache: JobCache
    renderer: Renderer
    # The pods that the job owns, from the store.
    pods: Sequence[Pod]
    # Whether any of its pods has ever run.
    has_run: bool

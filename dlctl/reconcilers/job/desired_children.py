"""The wanted children of a job other than its pods, also of a job that cannot be rendered."""

from collections.abc import Collection
from functools import partial

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.reconcilers.large_jobs.threads import run_step
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.status import status_transitions


async def desired_children(
    renderer: Renderer,
    observed: Observed,
    preexisting: Collection[tuple[Resource, str]],
    *,
    create_launcher: bool,
) -> Desired:
    """Return the wanted objects of a job; ``preexisting`` ones of others replace dependents.

    :raises ContentError, InvalidJobError: if they cannot be rendered.
    """
    job = renderer.job
    if job.is_partial:
        return fallback_children(renderer, observed)
    render = partial(renderer.desired, observed, create_launcher=create_launcher)
    desired = await run_step(Step.RENDERING, job.key.namespace, len(observed.replicas), render)
    if not preexisting:
        return desired
    wanted = [one for one in desired.dependents if (one.resource, one.name) not in preexisting]
    return attrs.evolve(desired, dependents=wanted)


def fallback_children(renderer: Renderer, observed: Observed) -> Desired:
    """Return the wanted objects of a job that cannot be rendered; if even this fails, none."""
    try:
        with wrap_content_errors(Step.RENDERING):
            return renderer.fallback_desired(observed)
    except (ContentError, InvalidJobError):
        # Roles stay as they are.
        return Desired(retained_resources=renderer.dialect.framework.retained_resources)


def partial_job(job: Job, observed: Observed, error: ContentError | InvalidJobError) -> Job:
    """Return a job that cannot be rendered: none of its children is created, its pods stay.

    :raises InvalidJobError: if none of its pods has ever run.
    """
    if not status_transitions.has_run(job, job.status, observed):
        raise InvalidJobError(str(error), field="spec") from error
    return attrs.evolve(job, invalid_reason=str(error), is_partial=True)

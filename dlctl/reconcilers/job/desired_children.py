"""Renders the wanted children of a job; of one that cannot be rendered, its pods stay."""

from contextlib import suppress

import attrs

from dlctl.api.job import Job
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.content_error_log import ContentErrorLog
from dlctl.reconcilers.large_jobs.threads import in_thread_if_slow
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.status import status_transitions


async def desired_children(
    renderer: Renderer,
    observed: Observed,
    cache: JobCache,
    content_errors: ContentErrorLog,
    *,
    create_launcher: bool,
) -> tuple[Job, Desired]:
    """Return the job, partial if it cannot be rendered, and its wanted objects.

    :raises InvalidJobError: if it cannot be rendered and none of its pods has ever run.
    """
    job, cost = renderer.job, len(observed.replicas)
    desired = Desired(retained_resources=renderer.dialect.framework.retained_resources)
    try:
        if not job.is_partial:
            render = wrap_content_errors("rendering")(renderer.desired)
            desired = await in_thread_if_slow(
                job.key.namespace, cost, render, observed, create_launcher=create_launcher
            )
    except (ContentError, InvalidJobError) as error:
        if isinstance(error, ContentError):
            content_errors.report(cache, error)
        if not status_transitions.has_run(job, job.status, observed):
            raise InvalidJobError(str(error), field="spec") from error
        # None of its children is known, so none is created; its existing pods stay.
        job = attrs.evolve(job, invalid_reason=str(error), is_partial=True)
    if cache.preexisting:
        wanted = [d for d in desired.dependents if (d.resource, d.name) not in cache.preexisting]
        desired = attrs.evolve(desired, dependents=wanted)
    if job.is_partial:
        # If even this fails, roles stay as they are.
        with suppress(ContentError, InvalidJobError), wrap_content_errors("rendering"):
            desired = renderer.fallback_desired(observed)
    return job, desired

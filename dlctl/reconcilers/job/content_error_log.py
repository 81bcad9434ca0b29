"""Errors in the content of jobs: counted each time, logged once."""

import logging

import attrs

from dlctl.metrics import Metrics
from dlctl.reconcilers.content_errors import ContentError
from dlctl.reconcilers.job.cache import JobCache

logger = logging.getLogger(__name__)


@attrs.frozen
class ContentErrorLog:
    """Counts and logs content errors of jobs of one kind."""

    metrics: Metrics
    kind: str

    def report(self, cache: JobCache, error: ContentError) -> None:
        """Count an error in a job's content, and log it if it is new."""
        self.metrics.dlctl_content_errors_total.labels(self.kind, error.step).inc()
        if cache.last_content_error != str(error):
            cache.last_content_error = str(error)
            text = "cannot process a job's content"
            logger.error(text, exc_info=error, extra={"step": error.step})

"""Holds back jobs whose statuses are not preserved: by another writer, or an outdated CRD.

Nothing may be decided from such a status: it lacks restarts and completed replicas.
"""

from typing import Final

import attrs

from dlctl.api.status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.dialects.dialect import DecodedObject
from dlctl.reconcilers.crd_check import CRDCheck, OutdatedCRDError
from dlctl.reconcilers.event_note import EventNote
from dlctl.reconcilers.events.job_events import JobEvents
from dlctl.reconcilers.job_cache import JobCache
from dlctl.reconcilers.job_metrics import JobMetrics
from dlctl.reconcilers.job_writer import JobWriter
from dlctl.reconcilers.status import status_conflicts
from dlctl.reconcilers.status.status_conflicts import StatusConflictDetector
from dlctl.reconcilers.status.status_rejection import STATUS_REJECTED, StatusRejectedError

CRD_OUTDATED: Final = "CRDOutdated"


@attrs.frozen
class StatusGuard:
    """Checks the statuses of one kind of job before they are relied on."""

    crd: CRDCheck
    writer: JobWriter
    events: JobEvents
    metrics: JobMetrics
    clock: Clock

    def left_s(self, obj: DecodedObject, cache: JobCache) -> float:
        """Return the seconds before a job may be reconciled; 0 for now."""
        now_s = self.clock.monotonic()
        if cache.status_conflicts.detect(obj.status, now_s):
            self.metrics.status_conflict()
            note = EventNote("Warning", status_conflicts.REASON, status_conflicts.MESSAGE)
            self.events.record(obj, note)
        rejected_s = cache.status_rejection.left_s(obj.metadata.generation or 0, now_s)
        return cache.status_conflicts.left_s(now_s) or rejected_s or self.crd.left_s()

    async def check_stored(self, obj: DecodedObject, status: JobStatus) -> None:
        """Check whether the server preserves statuses, if it did not the last time.

        :raises OutdatedCRDError: if it still does not.
        :raises JobGoneError: if the job is gone.
        """
        # A new job has no status yet; the response to its first one shows the same.
        if not self.crd.is_current() and status.phase is not JobPhase.NEW:
            self.crd.check(obj.dialect.write_status(status), await self.writer.refetch(obj))

    def report_outdated(self, obj: DecodedObject, cache: JobCache, error: OutdatedCRDError) -> None:
        """Report an outdated CRD on a job whose status it has just dropped."""
        cache.status_conflicts = StatusConflictDetector()
        self.events.record(obj, EventNote("Warning", CRD_OUTDATED, str(error)))

    def report_rejected(
        self, obj: DecodedObject, cache: JobCache, error: StatusRejectedError
    ) -> None:
        """Report on a job that the server refuses its status, which cannot say so itself."""
        generation, now_s = obj.metadata.generation or 0, self.clock.monotonic()
        if cache.status_rejection.add(str(error), generation, now_s):
            self.events.record(obj, EventNote("Warning", STATUS_REJECTED, str(error)))

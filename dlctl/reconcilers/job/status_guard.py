"""Holds back jobs whose statuses are not preserved: by another writer, or an outdated CRD.

Nothing may be decided from such a status: it lacks restarts and completed replicas.
"""

from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.clock import Clock
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.status.status_codec import OWN_STATE_FIELD
from dlctl.informers.store import Store
from dlctl.reconcilers.events.job_events import JobEvents
from dlctl.reconcilers.job import status_conflicts
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.crd_check import CRDCheck, is_preserved
from dlctl.reconcilers.job.metrics import JobMetrics
from dlctl.reconcilers.job.status_conflicts import StatusConflictDetector
from dlctl.reconcilers.job.status_rejection import STATUS_REJECTED, StatusRejectedError
from dlctl.reconcilers.job.writer import JobGoneError, JobWriter

CRD_OUTDATED: Final = "CRDOutdated"
_DROPPED: Final = (
    f"the server drops status.{OWN_STATE_FIELD} of this job but not of others, as by an "
    "admission policy or a webhook: restarts and completed replicas would be forgotten"
)


@attrs.frozen
class StatusGuard:
    """Checks the statuses of one kind of job before they are relied on."""

    crd: CRDCheck
    job_writer: JobWriter
    jobs: Store[JobObject]
    events: JobEvents
    metrics: JobMetrics
    clock: Clock

    def detect_conflict(self, obj: DecodedObject, cache: JobCache) -> None:
        """Report on a job that another writer has changed its status, and hold it back."""
        if cache.status_conflicts.detect(obj.status, self.clock.monotonic()):
            self.metrics.status_conflict()
            note = EventNote("Warning", status_conflicts.REASON, status_conflicts.MESSAGE)
            self.events.record(obj, note)

    def left_s(self, obj: DecodedObject, cache: JobCache) -> float:
        """Return the seconds before a job may be reconciled; 0 for now."""
        now_s = self.clock.monotonic()
        rejected_s = cache.status_rejection.left_s(obj.metadata.generation or 0, now_s)
        return cache.status_conflicts.left_s(now_s) or rejected_s or self.crd.left_s()

    async def check_stored(self, obj: DecodedObject, status: JobStatus) -> None:
        """Check whether the server preserves statuses, if it did not the last time.

        :raises StatusDroppedError: if it still does not.
        :raises JobGoneError: if the job is gone.
        """
        # A new job has no status yet; the response to its first one shows the same.
        if not self.crd.is_current() and status.phase is not JobPhase.NEW:
            self.crd.check(obj.dialect.write_status(status), await self.job_writer.refetch(obj))

    async def report_dropped(self, obj: DecodedObject, cache: JobCache) -> float:
        """Report on a job that its status was dropped; return the seconds until the next attempt.

        The other jobs of the kind wait as well, unless the server still has the status of one.
        """
        cache.status_conflicts = StatusConflictDetector()
        if await self._preserves_others(obj):
            self.report_rejected(obj, cache, StatusRejectedError(_DROPPED))
            now_s = self.clock.monotonic()
            return cache.status_rejection.left_s(obj.metadata.generation or 0, now_s)
        message = self.crd.record_drop()
        self.events.record(obj, EventNote("Warning", CRD_OUTDATED, message))
        return self.crd.left_s()

    async def _preserves_others(self, obj: DecodedObject) -> bool:
        """Return whether the server has dlctl's part of the status of another job.

        A CRD without the field also removes it from what is read.
        """
        others = (job for job in self.jobs if job.key != obj.key)
        # One that is being deleted is not read again.
        lasting = (job for job in others if not job.metadata.is_terminating)
        other = next(filter(is_preserved, lasting), None)
        if other is None:
            return False
        try:
            return is_preserved(await self.job_writer.refetch(other))
        except JobGoneError:
            return False

    def report_rejected(
        self, obj: DecodedObject, cache: JobCache, error: StatusRejectedError
    ) -> None:
        """Record an event that the server rejects the job's status."""
        generation, now_s = obj.metadata.generation or 0, self.clock.monotonic()
        if cache.status_rejection.add(str(error), generation, now_s):
            self.events.record(obj, EventNote("Warning", STATUS_REJECTED, str(error)))

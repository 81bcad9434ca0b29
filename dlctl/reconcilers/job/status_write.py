"""A write of a job's status, which metrics and events follow."""

from collections.abc import Sequence

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.status.job_status import JobStatus


@attrs.frozen
class StatusWrite:
    """A new status of a job as it was planned, and the events that report it."""

    job: Job
    status: JobStatus
    notes: Sequence[EventNote] = ()
    # True if metrics count the job under mpi-operator's names instead of training-operator's.
    for_mpi_operator: bool = False

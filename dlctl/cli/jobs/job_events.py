"""The events about a job and its pods."""

import datetime
from collections.abc import Collection

from dlctl.api.meta import EVENTS
from dlctl.cli.display.pod_warnings import DisplayedEvent
from dlctl.cli.jobs.cluster import TargetCluster
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.clock import EPOCH


class JobEvent(DisplayedEvent, frozen=True, gc=False):
    """One event with its reason and times."""

    reason: str = ""
    count: int | None = None
    first_timestamp: datetime.datetime | None = None
    last_timestamp: datetime.datetime | None = None
    event_time: datetime.datetime | None = None

    @property
    def first(self) -> datetime.datetime:
        """Return when it happened first: not later than it was created, whatever its author says.

        Some authors write Go's zero time, of the year 1, for one that they do not know.
        """
        created = self.metadata.creation_timestamp
        stated = [time for time in (self.first_timestamp, self.event_time) if time and time > EPOCH]
        return min(filter(None, (*stated[:1], created)), default=EPOCH)

    @property
    def last(self) -> datetime.datetime:
        return max(self.last_timestamp or self.first, self.first)


async def events_of(
    cluster: TargetCluster, job: JobSnapshot, pods: Collection[str]
) -> list[JobEvent]:
    """Return the events since the job was created, about it and pods of these names."""
    page = await cluster.client.list(EVENTS, JobEvent, namespace=job.key.namespace)
    names = {("Pod", name) for name in pods} | {(job.kind.resource.kind, job.key.name)}
    return [
        event
        for event in page.items
        if (event.involved_object.kind, event.involved_object.name) in names
        and (job.created is None or event.last >= job.created)
    ]

"""A job as it was read from the API server: the whole object, its status, and its spec. Pure."""

import datetime
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Self

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import UID, ObjectKey
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.cli.manifests.loading import as_job_object
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError

_STATE_BY_PHASE: Final[Mapping[JobPhase, str]] = {
    JobPhase.NEW: "New",
    JobPhase.FAILED: "Invalid",
}
_NOT_RUNNING: Final = frozenset({JobPhase.NEW, JobPhase.CREATING, JobPhase.RESTARTING})
_ALIVE: Final = (JobState.RUNNING, JobState.SUCCEEDED)


@attrs.frozen(slots=False)
class JobSnapshot:
    """One job of one kind."""

    kind: Kind
    # With kind and apiVersion, also when it comes from a list.
    manifest: Mapping[str, Any]
    obj: JobObject

    @classmethod
    def of(cls, kind: Kind, manifest: Mapping[str, Any]) -> Self:
        types = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
        return cls(kind, {**types, **manifest}, as_job_object(kind, {**types, **manifest}))

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.key.name}"

    @property
    def key(self) -> ObjectKey:
        return self.obj.metadata.key

    @property
    def uid(self) -> UID:
        return self.obj.metadata.uid

    @property
    def created(self) -> datetime.datetime | None:
        return self.obj.metadata.creation_timestamp

    @cached_property
    def decoded(self) -> DecodedObject:
        return self.kind.decode(self.obj)

    @cached_property
    def status(self) -> JobStatus:
        return self.decoded.dialect.read_status(self.decoded)

    @cached_property
    def job(self) -> Job | InvalidJobError:
        """Return the job that the spec describes, or why it describes none."""
        try:
            return self.kind.read(self.decoded)
        except InvalidJobError as error:
            return error

    @property
    def is_deleting(self) -> bool:
        return self.obj.metadata.is_terminating

    @property
    def is_finished(self) -> bool:
        return self.status.is_finished

    @property
    def is_decided(self) -> bool:
        """Return whether its outcome is known, although some of its pods may have to go."""
        return self.is_finished or self.status.phase is JobPhase.CLEAN_UP

    @property
    def state(self) -> str:
        """Return the state in one word."""
        status = self.status
        if self.is_deleting:
            return "Deleting"
        if self.is_decided and status.phase is not JobPhase.FAILED:
            return str(status.state)
        if status.phase in _NOT_RUNNING and self.waiting_message:
            return conditions.WAITING
        return _STATE_BY_PHASE.get(status.phase, str(status.phase))

    @property
    def waiting_message(self) -> str:
        """Return what the job waits for, as its controller reports it; empty if nothing."""
        found = conditions.find(self.status.conditions, conditions.WAITING)
        return found.message if found and found.status and not self.is_decided else ""

    @property
    def replica_counts(self) -> tuple[int, int]:
        """Return how many replicas run or have succeeded, and how many there are."""
        total = 0 if isinstance(self.job, InvalidJobError) else self.job.total_replicas
        counts = [one.count_by_state for one in self.status.replica_statuses]
        return sum(count.get(state, 0) for count in counts for state in _ALIVE), total

    def logs_command(self, replica: str) -> str:
        """Return the command that shows the output of one of its replicas."""
        return f"dlctl logs {self} -n {self.key.namespace} --replica {replica}"

    def elapsed_s(self, now: datetime.datetime) -> float | None:
        """Return how many seconds the job has run so far, or ran in total."""
        status = self.status
        if status.start_time is None:
            return None
        return ((status.completion_time or now) - status.start_time).total_seconds()

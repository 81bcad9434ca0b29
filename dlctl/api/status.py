"""What the engine knows and writes down of a job: its phase, its end, its restarts.

The status is the controller's only memory: whatever a decision rests on besides the cluster's
present state is in here, so that a controller that starts anew decides the same.
"""

import datetime
import enum
from collections.abc import Mapping

import attrs

from dlctl.api.conditions import Condition
from dlctl.api.elastic import Membership


class JobPhase(enum.StrEnum):
    """Where a job is in its life; the words are mx-operator's."""

    NEW = ""
    CREATING = "Creating"
    RUNNING = "Running"
    # Not mx-operator's: nothing of the job is there, until it is resumed.
    SUSPENDED = "Suspended"
    # Nor is this: all of it is taken down, to be made again.
    RESTARTING = "Restarting"
    CLEAN_UP = "CleanUp"
    # Ended, by success or failure: the state tells.
    DONE = "Done"
    # Never started: the spec is invalid.
    FAILED = "Failed"


class JobState(enum.StrEnum):
    """How a job or its replicas of one type fare."""

    UNKNOWN = "Unknown"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@attrs.frozen
class ReplicaStatus:
    """The replicas of one type: their common state, how many are in which, which are done."""

    type: str
    state: JobState
    count_by_state: Mapping[JobState, int]
    # Replicas that have exited 0 are never run again, even when their pods are gone.
    completed_indexes: frozenset[int] = frozenset()
    # A label selector of their pods, where the API has one.
    label_selector: str = ""


@attrs.frozen
class RestartRecord:
    """The tries that one replica has used up, and the pod that ended the last of them.

    ``failures`` counts what the program did; ``attempts`` also evictions and the like, and is what
    the back-off grows by. The UID keeps one pod from being counted twice.
    """

    failures: int
    attempts: int
    pod_uid: str
    reason: str
    finished_at: datetime.datetime
    exit_code: int | None = None


@attrs.frozen
class Failure:
    """The first cause of a job's failure; what failed after it is a consequence.

    One that is the job's as a whole, such as a deadline, names no replica.
    """

    replica: str
    pod: str
    reason: str
    message: str
    time: datetime.datetime
    exit_code: int | None = None


@attrs.frozen
class JobStatus:
    """A job's status as a value; two equal ones need no write."""

    phase: JobPhase = JobPhase.NEW
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    replica_statuses: tuple[ReplicaStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    start_time: datetime.datetime | None = None
    completion_time: datetime.datetime | None = None
    restarts: Mapping[str, RestartRecord] = attrs.field(factory=dict)
    failure: Failure | None = None
    observed_generation: int = 0
    # Of a job that scales: its workers; None before they are chosen.
    membership: Membership | None = None
    # How often the whole job was run again.
    job_restarts: int = 0
    # What the names of its workers begin with, since the status tells them by their names.
    worker_name_prefix: str = ""
    # Last written by another operator, whose children of the job lack our label.
    written_by_other_operator: bool = False

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to do for the job but to delete it."""
        return self.phase in (JobPhase.DONE, JobPhase.FAILED)

    def completed_indexes(self, replica_type: str) -> frozenset[int]:
        return next(
            (r.completed_indexes for r in self.replica_statuses if r.type == replica_type),
            frozenset(),
        )

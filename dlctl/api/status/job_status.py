"""The persisted state of a job: its phase, its outcome, its restarts.

The status is the controller's only memory: with it and the cluster's current state, a restarted
controller makes the same decisions.
"""

import datetime
import enum
from collections.abc import Mapping

import attrs

from dlctl.api.exit_codes import describe_exit_code
from dlctl.api.status.conditions import Condition
from dlctl.api.status.membership import Membership
from dlctl.api.status.verdict import Attempt


class JobPhase(enum.StrEnum):
    """The phase of a job, with mx-operator's names."""

    NEW = ""
    CREATING = "Creating"
    RUNNING = "Running"
    # Not mx-operator's: the job has no pods until it is resumed.
    SUSPENDED = "Suspended"
    # Not mx-operator's: the whole job is deleted, to be created again.
    RESTARTING = "Restarting"
    CLEAN_UP = "CleanUp"
    # Ended; the state says whether it succeeded.
    DONE = "Done"
    # Never started: the spec is invalid.
    FAILED = "Failed"

    @property
    def is_active(self) -> bool:
        """Return whether the job's replicas are being created, or run."""
        return self in (JobPhase.CREATING, JobPhase.RUNNING)

    @property
    def is_before_run(self) -> bool:
        """Return whether the job has not run yet, as far as its phase shows."""
        return self in (JobPhase.NEW, JobPhase.CREATING)

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended, even if it is still to be cleaned up."""
        return self in (JobPhase.CLEAN_UP, JobPhase.DONE, JobPhase.FAILED)


class JobState(enum.StrEnum):
    """The state of a job, or of the replicas of one type."""

    UNKNOWN = "Unknown"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@attrs.frozen
class ReplicaStatus:
    """The replicas of one type: their common state, counts by state, completed indexes."""

    type: str
    state: JobState
    count_by_state: Mapping[JobState, int]
    # Replicas that exited 0 are never restarted, even if their pods are deleted.
    completed_indexes: frozenset[int] = frozenset()
    # The label selector of their pods, if the API has one.
    label_selector: str = ""


@attrs.frozen
class RestartRecord:
    """How often one replica has ended, and the pod that ended last.

    ``failures`` counts failures of the program; ``consecutive_ends`` also counts evictions and the
    like, starts again after a long run, and determines the back-off. The UID prevents counting a
    pod twice.
    """

    failures: int
    consecutive_ends: int
    pod_uid: str
    reason: str
    finished_at: datetime.datetime
    exit_code: int | None = None

    def describe(self) -> str:
        """Return how the replica ended last."""
        code = self.exit_code
        return self.reason if code is None else f"exit code {code} ({describe_exit_code(code)})"


@attrs.frozen
class Failure:
    """The first cause of a job's failure; later failures are consequences.

    A failure of the job as a whole, such as an exceeded deadline, names no replica.
    """

    replica: str
    pod: str
    reason: str
    message: str
    time: datetime.datetime
    exit_code: int | None = None
    # The reason of the pod itself, where ``reason`` may be that of its container. It is not stored.
    pod_reason: str = attrs.field(default="", eq=False)


@attrs.frozen
class JobStatus:
    """A job's status as a value; if equal to the stored one, nothing is written."""

    phase: JobPhase = JobPhase.NEW
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    replica_statuses: tuple[ReplicaStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    start_time: datetime.datetime | None = None
    completion_time: datetime.datetime | None = None
    # When the job first ran since its creation or resumption; only of jobs that must by a deadline.
    first_run_time: datetime.datetime | None = None
    restarts: Mapping[str, RestartRecord] = attrs.field(factory=dict)
    failure: Failure | None = None
    observed_generation: int = 0
    # The API version that the job is read as for its whole life, for kinds that need to record it.
    version: str = ""
    # Elastic jobs: the workers; None before they are chosen.
    membership: Membership | None = None
    # How often the whole job was restarted: the number of its present attempt.
    job_restarts: int = 0
    # How many restarts count towards the failure policy's maximum.
    counted_restarts: int = 0
    # The last attempts, the oldest first; the last one runs, unless the job has ended.
    attempts: tuple[Attempt, ...] = ()
    # When the present attempt gave up avoiding nodes, since it could not be scheduled.
    avoidance_dropped_at: datetime.datetime | None = None
    # The indexes by type of replicas that a scale-down has removed, until their pods are gone.
    scaled_down: Mapping[str, frozenset[int]] = attrs.field(factory=dict)
    # The name prefix of workers, since the status lists them by name.
    worker_name_prefix: str = ""
    # Last written by another operator, whose children of the job lack dlctl's label.
    written_by_other_operator: bool = False

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to do except to delete the job."""
        return self.phase in (JobPhase.DONE, JobPhase.FAILED)

    @property
    def last_attempt(self) -> Attempt | None:
        """Return the newest of the recorded attempts."""
        return self.attempts[-1] if self.attempts else None

    def completed_indexes(self, replica_type: str) -> frozenset[int]:
        return next(
            (r.completed_indexes for r in self.replica_statuses if r.type == replica_type),
            frozenset(),
        )

"""When a job runs, and what happens to it afterwards: Kubeflow's RunPolicy."""

import enum

import attrs

from dlctl.api.policies.failure_policy import FailurePolicy
from dlctl.api.policies.scheduling_policy import SchedulingPolicy


class CleanPodPolicy(enum.StrEnum):
    """Which pods are deleted when a job has ended."""

    ALL = "All"
    RUNNING = "Running"
    NONE = "None"


@attrs.frozen
class RunPolicy:
    """When a job runs, for how long, and what happens to it and its pods afterwards.

    None means no limit.
    """

    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    # Seconds between the job's end and its deletion.
    ttl_after_finished_s: int | None = None
    # Seconds between the job's start and its failure.
    active_deadline_s: int | None = None
    # The total number of replica failures that fails the job; 0 allows none.
    backoff_limit: int | None = None
    suspended: bool = False
    scheduling_policy: SchedulingPolicy = attrs.field(factory=SchedulingPolicy)
    # Decides about failures instead of restart policies and the limit; None if the user gave none.
    failure_policy: FailurePolicy | None = None
    # Seconds between the job's creation or resumption and its failure unless it runs.
    starting_deadline_s: int | None = None

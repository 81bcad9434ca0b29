"""A job as the engine sees it, independent of its API group.

Dialects decode users' objects into these values; nothing here knows a wire format.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self

import attrs

from dlctl.api.defaults import JobDefaults
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import RunPolicy
from dlctl.api.status.condition_messages import ConditionMessages
from dlctl.api.status.job_status import JobStatus

# The replica types of jobs with a launcher, which connects to the workers.
LAUNCHER: Final = "launcher"
WORKER: Final = "worker"
# The default of core/v1.
DEFAULT_GRACE_PERIOD_S: Final = 30


@attrs.frozen(order=True)
class Replica:
    """One member of a job; the type has the framework's spelling, in lower case."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


# The launcher of kinds that have one.
LAUNCHER_REPLICA: Final = Replica(LAUNCHER, 0)


def replica_type(name: str) -> str:
    """Return the type in the name of a replica, such as ``worker-0``; empty if it names none."""
    return name.rpartition("-")[0]


@attrs.frozen
class ReplicaSpec:
    """The number of replicas of one type, and their pod template.

    The template is complete except for what differs between the replicas of the type.
    """

    type: str
    replicas: int
    template: Mapping[str, Any]
    # The training container: its exit code is the replica's.
    container: str
    # The port for connections between replicas.
    port: int
    # The ports of a replica's service, by name.
    ports: Mapping[str, int] = attrs.field(factory=dict)
    retry_policy: RetryPolicy = RetryPolicy.TABLE
    # Starts only after all replicas of other types run: held by a scheduling gate, or in a gang,
    # which needs all of its pods at once, by waiting in the container.
    gated: bool = False
    # Created only after the replicas of other types are ready.
    create_last: bool = False
    # Its ended pods are kept for their logs, whatever the clean-pod policy.
    keep_after_finish: bool = False
    # The indexes of the replicas, unless they are 0 to n-1.
    explicit_indexes: tuple[int, ...] | None = None
    # True if names contain the index; a type with a single replica may omit it.
    indexed: bool = True
    # A label selector of the type's pods for the scale subresource; empty: not written.
    label_selector: str = ""

    @property
    def grace_period_s(self) -> int:
        """Return the seconds between SIGTERM and SIGKILL of its pods."""
        given = self.template["spec"].get("terminationGracePeriodSeconds")
        return given if isinstance(given, int) else DEFAULT_GRACE_PERIOD_S

    @property
    def indexes(self) -> Sequence[int]:
        return range(self.replicas) if self.explicit_indexes is None else self.explicit_indexes


@attrs.frozen
class SpecWarning:
    """A difference between the user's spec and its effect, reported when pods are created."""

    reason: str
    message: str


@attrs.frozen
class SuccessPolicy:
    """The replicas that determine the outcome of the job."""

    # The job succeeds when all of these have succeeded, or one if ``any_succeeds``; never if empty.
    success_replicas: tuple[Replica, ...]
    # The job is running once one of these runs.
    running_replicas: tuple[Replica, ...]
    any_succeeds: bool = False
    # The job is running only while all of ``running_replicas`` run, instead of one.
    all_run: bool = False
    # The types whose failures do not fail the job.
    tolerated_types: frozenset[str] = frozenset()
    # The type that decides is listed with 0 replicas.
    succeeds_immediately: bool = False

    def requires(self, replica: Replica) -> bool:
        """Return whether the job fails if a replica fails for good."""
        if replica.type not in self.tolerated_types:
            return True
        return not self.any_succeeds and replica in self._success_set

    def decides_running(self, replica: Replica) -> bool:
        """Return whether a replica is one of ``running_replicas``."""
        return replica in self._running_set

    @cached_property
    def _running_set(self) -> frozenset[Replica]:
        return frozenset(self.running_replicas)

    @cached_property
    def _success_set(self) -> frozenset[Replica]:
        # A set, since it is checked for each of many replicas.
        return frozenset(self.success_replicas)

    @classmethod
    def of_chief(cls, chief: Replica) -> Self:
        """Return the policy of a job whose outcome is that of one replica."""
        return cls(success_replicas=(chief,), running_replicas=(chief,))


@attrs.frozen
class Job:
    """One job: the user's spec with defaults applied, and the last written status.

    ``name_prefix`` and ``runtime_id`` determine the names of children; a ``runtime_id`` that is
    missing in the user's spec is derived from the UID, so names never depend on a write.
    """

    resource: Resource
    key: ObjectKey
    uid: UID
    generation: int
    replica_specs: tuple[ReplicaSpec, ...]
    success_policy: SuccessPolicy
    name_prefix: str
    # Part of the children's names; empty if the job's name alone makes them unique.
    runtime_id: str
    status: JobStatus
    run_policy: RunPolicy = attrs.field(factory=RunPolicy)
    messages: ConditionMessages = attrs.field(
        default=attrs.Factory(lambda job: ConditionMessages(job.resource.kind, job.key), True)
    )
    defaults: JobDefaults = attrs.field(factory=JobDefaults)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    warnings: tuple[SpecWarning, ...] = ()
    # The types whose replicas are one process each, in the order of their ranks; empty if unknown.
    ranked_types: tuple[str, ...] = ()
    # Set for elastic jobs.
    elasticity: Elasticity | None = None
    # Set where the launcher's pod belongs to a batch/v1 Job.
    launcher_job: LauncherJob | None = None
    # Other fields of the user's spec, for the framework.
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    # A local job is one process: no cluster environment and no services.
    is_local: bool = False
    # True if its replicas share one service instead of having one each.
    shares_service: bool = False
    scheduler_name: str = ""
    # Why the current spec is invalid; running pods continue.
    invalid_reason: str = ""
    # True if only as much of the spec is known as is needed to judge pods: no children are created.
    is_partial: bool = False
    # A merge patch with the runtime id, if the user's spec lacks it.
    spec_patch: Mapping[str, Any] | None = None

    @property
    def is_gang_scheduled(self) -> bool:
        """Whether a gang scheduler starts its replicas together."""
        return bool(self.defaults.gang_scheduler_name) and not self.is_local

    def replica_spec(self, replica_type: str) -> ReplicaSpec | None:
        return next((spec for spec in self.replica_specs if spec.type == replica_type), None)

    def replica_count(self, replica_type: str) -> int:
        """Return the number of replicas of a type; 0 for a type that is not listed."""
        spec = self.replica_spec(replica_type)
        return spec.replicas if spec else 0

    @property
    def replicas(self) -> Iterator[Replica]:
        for spec in self.replica_specs:
            for index in spec.indexes:
                yield Replica(spec.type, index)

    @property
    def total_replicas(self) -> int:
        return sum(spec.replicas for spec in self.replica_specs)

    def rank_of(self, replica: Replica) -> int | None:
        """Return the rank of a replica's process; None if it is unknown."""
        if replica.type not in self.ranked_types:
            return None
        before = self.ranked_types[: self.ranked_types.index(replica.type)]
        return replica.index + sum(self.replica_count(each) for each in before)

    @property
    def has_failure_policy(self) -> bool:
        return self.run_policy.failure_policy is not None

    def failure_policy_decides(self, replica_type: str) -> bool:
        """Return whether the failure policy decides about a type whose failures matter."""
        return self.has_failure_policy and replica_type not in self.success_policy.tolerated_types

    def has_own_pod(self, replica: Replica) -> bool:
        """Return whether a replica's pod is the job's own, and not that of a batch/v1 Job."""
        return self.launcher_job is None or replica.type != LAUNCHER

    def child_name(self, replica: Replica) -> str:
        """Return the name of a replica's pod or Job, and of its service if it has its own."""
        prefix = self._prefix_by_type.get(replica.type) or self._type_prefix(replica.type)
        return f"{prefix}-{replica.index}" if replica.type not in self._unindexed_types else prefix

    @cached_property
    def shared_service(self) -> str:
        """Return the name of a service that all replicas share; no child of a replica has it."""
        return "-".join(part for part in (self.name_prefix, self.runtime_id) if part)

    def service_name(self, replica: Replica) -> str:
        """Return the name of the service that makes a replica's host name resolve."""
        return self.shared_service if self.shares_service else self.child_name(replica)

    def host_name(self, replica: Replica) -> str:
        """Return the DNS name of a replica within its namespace."""
        name = self.child_name(replica)
        return f"{name}.{self.shared_service}" if self.shares_service else name

    @cached_property
    def _prefix_by_type(self) -> Mapping[str, str]:
        return {spec.type: self._type_prefix(spec.type) for spec in self.replica_specs}

    @cached_property
    def _unindexed_types(self) -> frozenset[str]:
        return frozenset(spec.type for spec in self.replica_specs if not spec.indexed)

    def _type_prefix(self, replica_type: str) -> str:
        parts = (self.name_prefix, replica_type, self.runtime_id)
        return "-".join(part for part in parts if part)

"""A job as the engine sees it, whatever API group it was written for.

Dialects read users' objects into these values; nothing here knows a wire form.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import attrs

from dlctl.api.condition_messages import ConditionMessages
from dlctl.api.defaults import JobDefaults
from dlctl.api.elastic import Elasticity
from dlctl.api.exit_codes import RetryPolicy
from dlctl.api.gangs import SchedulingPolicy
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.status import JobStatus
from dlctl.api.undecoded_object import UndecodedObject


class CleanPodPolicy(enum.StrEnum):
    """Which pods go when a job has ended."""

    ALL = "All"
    RUNNING = "Running"
    NONE = "None"


@attrs.frozen
class RunPolicy:
    """When a job is to run, for how long, and what becomes of it and its pods afterwards.

    Absent limits do not limit.
    """

    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    # Seconds after its end when the job itself is deleted.
    ttl_after_finished_s: int | None = None
    # Seconds after its start when it fails.
    active_deadline_s: int | None = None
    # So many failures of its replicas, taken together, fail the job; 0 allows none.
    backoff_limit: int | None = None
    suspended: bool = False
    scheduling_policy: SchedulingPolicy = attrs.field(factory=SchedulingPolicy)


@attrs.frozen(order=True)
class Replica:
    """One member of a job; the type is spelt as the framework does, in lower case."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


@attrs.frozen
class ReplicaSpec:
    """How many replicas of one type, made from which pod template.

    The template is complete but for what differs between the replicas of the type.
    """

    type: str
    replicas: int
    template: Mapping[str, Any]
    # The container that trains: its exit is the replica's.
    container: str
    # Where the replicas meet.
    port: int
    # What a replica's service publishes, by the name of the port.
    ports: Mapping[str, int] = attrs.field(factory=dict)
    retry_policy: RetryPolicy = RetryPolicy.TABLE
    # Does nothing before all replicas of other types run: a scheduling gate holds it back, or in a
    # gang, whose scheduler waits for all of its pods, it waits by itself.
    gated: bool = False
    # Not even made before the replicas of other types are ready.
    create_last: bool = False
    # Its pods that have ended stay, whatever the policy for pods: there are logs to be read.
    keep_after_finish: bool = False
    # The indexes of the replicas, where they do not simply begin at 0.
    explicit_indexes: tuple[int, ...] | None = None
    # A type of which there is one may go without the index in its name.
    indexed: bool = True
    # A label selector of the type's pods, for who scales the job; not written if empty.
    label_selector: str = ""

    @property
    def indexes(self) -> Sequence[int]:
        return range(self.replicas) if self.explicit_indexes is None else self.explicit_indexes


@attrs.frozen
class SpecWarning:
    """Something in the user's spec that is not what becomes of it, told when pods are made."""

    reason: str
    message: str


@attrs.frozen
class SuccessPolicy:
    """The replicas whose fate is the job's."""

    # The job succeeds when all of these have, or one if one is enough; without any, never.
    success_replicas: tuple[Replica, ...]
    # The job runs once one of these does.
    running_replicas: tuple[Replica, ...]
    any_succeeds: bool = False
    # The types whose failures the job gets over.
    tolerated_types: frozenset[str] = frozenset()

    @classmethod
    def of_chief(cls, chief: Replica) -> Self:
        """Return those of a job that one replica decides."""
        return cls(success_replicas=(chief,), running_replicas=(chief,))


@attrs.frozen
class Job:
    """One job: what the user asked for, defaults filled in, and the status last written.

    ``name_prefix`` and ``runtime_id`` make the names of children; a ``runtime_id`` that the
    user's spec does not hold yet is derived from the UID, so names never depend on a write.
    """

    resource: Resource
    key: ObjectKey
    uid: UID
    generation: int
    replica_specs: tuple[ReplicaSpec, ...]
    success_policy: SuccessPolicy
    name_prefix: str
    # Part of the children's names; may be empty where the job's name alone makes them unique.
    runtime_id: str
    status: JobStatus
    run_policy: RunPolicy = RunPolicy()
    messages: ConditionMessages = attrs.field(
        default=attrs.Factory(lambda job: ConditionMessages(job.resource.kind, job.key), True)
    )
    defaults: JobDefaults = attrs.field(factory=JobDefaults)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    warnings: tuple[SpecWarning, ...] = ()
    # Of a job whose workers may come and go while it runs.
    elasticity: Elasticity | None = None
    # What else the user's spec says, for the framework to read.
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    # A local job is one process: no cluster environment and no services.
    is_local: bool = False
    scheduler_name: str = ""
    # Why the spec as it stands now cannot be read; what runs goes on without it.
    invalid_reason: str = ""
    # Whether no more of the spec is known than is needed to judge pods: none are made from it.
    is_partial: bool = False
    # A merge patch for what the user's spec does not hold yet: the runtime id, and nothing else.
    spec_patch: Mapping[str, Any] | None = None

    @property
    def is_gang_scheduled(self) -> bool:
        """Whether a scheduler of gangs starts its replicas together."""
        return bool(self.defaults.gang_scheduler_name) and not self.is_local

    def replica_spec(self, replica_type: str) -> ReplicaSpec | None:
        return next((spec for spec in self.replica_specs if spec.type == replica_type), None)

    def replica_count(self, replica_type: str) -> int:
        """Return how many replicas of a type there are; none of a type that is not listed."""
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

    def child_name(self, replica: Replica) -> str:
        """Return the name that the pod and the service of a replica share."""
        prefix = self._prefix_by_type.get(replica.type) or self._type_prefix(replica.type)
        return f"{prefix}-{replica.index}" if replica.type not in self._unindexed_types else prefix

    @cached_property
    def _prefix_by_type(self) -> Mapping[str, str]:
        return {spec.type: self._type_prefix(spec.type) for spec in self.replica_specs}

    @cached_property
    def _unindexed_types(self) -> frozenset[str]:
        return frozenset(spec.type for spec in self.replica_specs if not spec.indexed)

    def _type_prefix(self, replica_type: str) -> str:
        parts = (self.name_prefix, replica_type, self.runtime_id)
        return "-".join(part for part in parts if part)


class JobObject(UndecodedObject, frozen=True, gc=False):
    """A job as it is on the server, its spec and status still undecoded."""

    api_version: str = ""
    kind: str = ""

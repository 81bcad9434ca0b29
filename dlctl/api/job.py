"""A job as the engine sees it, whatever API group it was written for.

Dialects read users' objects into these values; nothing here knows a wire form.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import attrs

from dlctl.api.defaults import JobDefaults
from dlctl.api.elastic import Elasticity
from dlctl.api.exitcodes import RetryRule
from dlctl.api.gangs import SchedulingPolicy
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.reporting import Reporting
from dlctl.api.status import JobStatus
from dlctl.api.undecoded import UndecodedObject


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
    ttl_s: int | None = None
    # Seconds after its start when it fails.
    deadline_s: int | None = None
    # So many failures of its replicas, taken together, fail the job; 0 allows none.
    backoff_limit: int | None = None
    suspended: bool = False
    scheduling: SchedulingPolicy = attrs.field(factory=SchedulingPolicy)


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
    retries: RetryRule = RetryRule.TABLE
    # Does nothing before all replicas of other types run: a scheduling gate holds it back, or in a
    # gang, whose scheduler waits for all of its pods, it waits by itself.
    waits_for_others: bool = False
    # Not even made before the replicas of other types are ready.
    made_last: bool = False
    # Its pods that have ended stay, whatever the policy for pods: there are logs to be read.
    outlasts_job: bool = False
    # The indexes of the replicas, where they do not simply begin at 0.
    members: tuple[int, ...] | None = None
    # A type of which there is one may go without the index in its name.
    numbered: bool = True
    # A label selector of the type's pods, for who scales the job; not written if empty.
    selector: str = ""

    @property
    def indexes(self) -> Sequence[int]:
        return range(self.replicas) if self.members is None else self.members


@attrs.frozen
class Caution:
    """Something in the user's spec that is not what becomes of it, told when pods are made."""

    reason: str
    message: str


@attrs.frozen
class Deciders:
    """The replicas whose fate is the job's."""

    # The job succeeds when all of these have, or one if one is enough; without any, never.
    succeed: tuple[Replica, ...]
    # The job runs once one of these does.
    run: tuple[Replica, ...]
    one_is_enough: bool = False
    # The types whose failures the job gets over.
    dispensable: frozenset[str] = frozenset()

    @classmethod
    def chief(cls, chief: Replica) -> Self:
        """Return those of a job that one replica decides."""
        return cls(succeed=(chief,), run=(chief,))


@attrs.frozen
class Job:
    """One job: what the user asked for, defaults filled in, and the status last written.

    ``child_prefix`` and ``runtime_id`` make the names of children; a ``runtime_id`` that the
    user's spec does not hold yet is derived from the UID, so names never depend on a write.
    """

    resource: Resource
    key: ObjectKey
    uid: UID
    generation: int
    replica_specs: tuple[ReplicaSpec, ...]
    deciders: Deciders
    child_prefix: str
    # Part of the children's names; may be empty where the job's name alone makes them unique.
    runtime_id: str
    status: JobStatus
    run_policy: RunPolicy = RunPolicy()
    reporting: Reporting = attrs.field(factory=Reporting)
    defaults: JobDefaults = attrs.field(factory=JobDefaults)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    cautions: tuple[Caution, ...] = ()
    # Of a job whose workers may come and go while it runs.
    elasticity: Elasticity | None = None
    # What else the user's spec says, for the framework to read.
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    # A local job is one process: no cluster environment and no services.
    local: bool = False
    scheduler_name: str = ""
    # Why the spec as it stands now cannot be read; what runs goes on without it.
    invalid_reason: str = ""
    # Whether no more of the spec is known than is needed to judge pods: none are made from it.
    partial: bool = False
    # A merge patch for what the user's spec does not hold yet: the runtime id, and nothing else.
    spec_patch: Mapping[str, Any] | None = None

    @property
    def ganged(self) -> bool:
        """Whether a scheduler of gangs starts its replicas together."""
        return bool(self.defaults.gang_scheduler) and not self.local

    def spec_of(self, replica_type: str) -> ReplicaSpec | None:
        return next((spec for spec in self.replica_specs if spec.type == replica_type), None)

    def count(self, replica_type: str) -> int:
        """Return how many replicas of a type there are; none of a type that is not listed."""
        spec = self.spec_of(replica_type)
        return spec.replicas if spec else 0

    @property
    def replicas(self) -> Iterator[Replica]:
        for spec in self.replica_specs:
            for index in spec.indexes:
                yield Replica(spec.type, index)

    @property
    def size(self) -> int:
        return sum(spec.replicas for spec in self.replica_specs)

    def child_name(self, replica: Replica) -> str:
        """Return the name that the pod and the service of a replica share."""
        prefix = self._name_prefixes.get(replica.type) or self._name_prefix(replica.type)
        return f"{prefix}-{replica.index}" if replica.type not in self._unnumbered else prefix

    @cached_property
    def _name_prefixes(self) -> Mapping[str, str]:
        return {spec.type: self._name_prefix(spec.type) for spec in self.replica_specs}

    @cached_property
    def _unnumbered(self) -> frozenset[str]:
        return frozenset(spec.type for spec in self.replica_specs if not spec.numbered)

    def _name_prefix(self, replica_type: str) -> str:
        parts = (self.child_prefix, replica_type, self.runtime_id)
        return "-".join(part for part in parts if part)


class JobObject(UndecodedObject, frozen=True, gc=False):
    """A job as it is on the server, its spec and status still undecoded."""

    api_version: str = ""
    kind: str = ""

"""A job as the engine sees it, whatever API group it was written for.

Dialects read users' objects into these values; nothing here knows a wire form.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import msgspec

from dlctl.api.exitcodes import ExitClass
from dlctl.api.meta import UID, Object, ObjectKey, Resource
from dlctl.api.status import JobStatus


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


@attrs.frozen(order=True)
class Replica:
    """One member of a job; the type is spelt as the framework does, in lower case."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


@attrs.frozen
class ReplicaSpec:
    """How many replicas of one type, made from which pod template."""

    type: str
    replicas: int
    template: Mapping[str, Any]
    port: int


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
    chief: Replica
    child_prefix: str
    runtime_id: str
    status: JobStatus
    run_policy: RunPolicy = RunPolicy()
    # A local job is one process: no cluster environment and no services.
    local: bool = False
    scheduler_name: str = ""
    # Exit codes above 128 that the common table does not name.
    signals: ExitClass = ExitClass.PERMANENT
    # A merge patch for what the user's spec does not hold yet: the runtime id, and nothing else.
    spec_patch: Mapping[str, Any] | None = None

    def spec_of(self, replica_type: str) -> ReplicaSpec | None:
        return next((spec for spec in self.replica_specs if spec.type == replica_type), None)

    def count(self, replica_type: str) -> int:
        """Return how many replicas of a type there are; none of a type that is not listed."""
        spec = self.spec_of(replica_type)
        return spec.replicas if spec else 0

    @property
    def replicas(self) -> Iterator[Replica]:
        for spec in self.replica_specs:
            for index in range(spec.replicas):
                yield Replica(spec.type, index)

    @property
    def size(self) -> int:
        return sum(spec.replicas for spec in self.replica_specs)

    def child_name(self, replica: Replica) -> str:
        """Return the name that the pod and the service of a replica share."""
        return f"{self.child_prefix}-{replica.type}-{self.runtime_id}-{replica.index}"


class JobObject(Object, frozen=True, gc=False):
    """A job as it is on the server, its spec and status still undecoded."""

    api_version: str = ""
    kind: str = ""
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")

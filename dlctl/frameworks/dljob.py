"""The extension point: what a class must say of a training framework to have its jobs run.

The words are dl-operator's published contract. A framework can be supported this way if it sets
up its cluster from environment variables; everything else is common to all of them.
"""

import abc
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from dlctl.api.dependents import Dependent
from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.meta import Resource
from dlctl.frameworks.validation import invalid_reason


class DLJob(abc.ABC):
    """One job, seen by its framework: it knows the job's shape and makes no decision.

    A subclass states:

    - ``job_type``: the kind of its jobs, such as ``MXJob``;
    - ``replica_types``: their replica types, in lower case;
    - ``container_properties``: of the container that trains: ``ports`` (the first one is where
      replicas meet), and if wanted its ``name`` (the kind without ``Job``, in lower case, if not)
      and ``volumes`` (paths that get an empty directory each);
    - :meth:`get_environment_variables`.

    ``chief_type`` is the type whose replica 0 decides the job, by default the first one;
    ``singletons`` are the types of which there must be exactly one.
    """

    job_type: ClassVar[str]
    replica_types: ClassVar[list[str]]
    container_properties: ClassVar[Mapping[str, Any]]
    chief_type: ClassVar[str] = ""
    singletons: ClassVar[list[str]] = []
    # Where what :meth:`dependents` returns is served.
    dependent_resources: ClassVar[Collection[Resource]] = ()
    # Those of them whose objects stay when the job has ended or is suspended, until it is deleted.
    retained_resources: ClassVar[Collection[Resource]] = ()
    # Whether there is something to make by :meth:`secrets`.
    creates_secrets: ClassVar[bool] = False
    # The rights, as group, resource and verb, that jobs' roles hand on to their pods.
    delegated_rules: ClassVar[Collection[tuple[str, str, str]]] = ()
    # Whether all containers of a pod are told of the cluster, or the one that trains alone.
    sets_env_in_all_containers: ClassVar[bool] = False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # What only gathers what several frameworks share is none itself.
        problem = "" if abstract else invalid_reason(cls)
        if problem:
            raise TypeError(f"{cls.__module__}.{cls.__qualname__} {problem}")

    def __init__(self, job: Job) -> None:
        self.job = job

    @classmethod
    def default_chief(cls) -> Replica:
        return Replica(cls.chief_type or cls.replica_types[0], 0)

    @classmethod
    def container_name(cls) -> str:
        """Return the name of the container that trains."""
        default = cls.job_type.removesuffix("Job").lower()
        return str(cls.container_properties.get("name", default))

    @classmethod
    def default_port(cls) -> int:
        return int(cls.container_properties["ports"][0])

    def number_of_replicas(self, replica_type: str) -> int:
        """Return how many replicas of a type the job has: 0 if it lists none."""
        return self.job.replica_count(replica_type)

    def get_replica_spec(self, replica_type: str) -> ReplicaSpec | None:
        return self.job.replica_spec(replica_type)

    def min_available(self, replica_type: str) -> int:
        """Return how many replicas of a type will do for the job to begin."""
        return self.number_of_replicas(replica_type)

    def address(self, replica_type: str, replica_index: int) -> str:
        """Return the host name that a replica answers to within its namespace."""
        return self.job.child_name(Replica(replica_type, replica_index))

    def port(self, replica_type: str) -> int:
        """Return the port that the replicas of a type listen on."""
        spec = self.job.replica_spec(replica_type)
        return spec.port if spec else self.default_port()

    @abc.abstractmethod
    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        """Return what to add to the environment of one replica.

        Where the user has set the same name, the user's wins, but for Kubeflow's kinds.
        A value that is no string says where it comes from, as core/v1 ``valueFrom`` does.
        """

    def mutate_pod_spec(self, pod_spec: Mapping[str, Any], replica: Replica) -> Mapping[str, Any]:
        """Return a replica's pod spec with what it takes beside environment and volumes."""
        return pod_spec

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterable[Dependent]:
        """Return what the job has beside pods and services, while these replicas run.

        ``present`` are the replicas whose pods exist and are owned by this job; None means all.
        """
        return ()

    def secrets(self) -> Iterable[Dependent]:
        """Return what is made before the first pods, once, and is never read by the controller."""
        return ()

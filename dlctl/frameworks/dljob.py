"""The extension point: the base class by which a training framework's jobs can be run.

The names are dl-operator's published contract. Any framework that sets up its cluster from
environment variables can be supported this way; everything else is common to all frameworks.
"""

import abc
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.meta import Resource
from dlctl.api.objects.dependents import Dependent
from dlctl.frameworks.class_validation import invalid_reason


class DLJob(abc.ABC):
    """One job from its framework's view: describes the job's shape and makes no decisions.

    A subclass defines:

    - ``job_type``: the kind of its jobs, such as ``MXJob``;
    - ``replica_types``: their replica types, in lower case;
    - ``container_properties``: of the training container: ``ports`` (the first one is for
      connections between replicas), and optionally its ``name`` (by default the kind without
      ``Job``, in lower case) and ``volumes`` (paths where an empty directory each is mounted);
    - :meth:`get_environment_variables`.

    ``chief_type`` is the type whose replica 0 determines the job's outcome, by default the first
    type; ``singletons`` are the types with exactly one replica.
    """

    job_type: ClassVar[str]
    replica_types: ClassVar[list[str]]
    container_properties: ClassVar[Mapping[str, Any]]
    chief_type: ClassVar[str] = ""
    singletons: ClassVar[list[str]] = []
    # The resources of the objects that :meth:`dependents` returns.
    dependent_resources: ClassVar[Collection[Resource]] = ()
    # Resources whose objects are kept when the job has ended or is suspended, until it is deleted.
    retained_resources: ClassVar[Collection[Resource]] = ()
    # True if :meth:`secrets` returns any.
    creates_secrets: ClassVar[bool] = False
    # True if launchers are pods of batch/v1 Jobs: see :class:`.LauncherJob`.
    creates_launcher_jobs: ClassVar[bool] = False
    # The rights (group, resource, verb) that jobs' roles grant to their pods.
    delegated_rules: ClassVar[Collection[tuple[str, str, str]]] = ()
    # True if a gang scheduler replaces the one that a pod template names.
    overrides_scheduler: ClassVar[bool] = False
    # True if all containers of a pod get the cluster environment, False if only the training
    # container does.
    sets_env_in_all_containers: ClassVar[bool] = False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Abstract bases, which several frameworks share, are not frameworks themselves.
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
        """Return the name of the training container."""
        default = cls.job_type.removesuffix("Job").lower()
        return str(cls.container_properties.get("name", default))

    @classmethod
    def default_port(cls) -> int:
        return int(cls.container_properties["ports"][0])

    def number_of_replicas(self, replica_type: str) -> int:
        """Return the number of replicas of a type; 0 for a type that is not listed."""
        return self.job.replica_count(replica_type)

    def get_replica_spec(self, replica_type: str) -> ReplicaSpec | None:
        return self.job.replica_spec(replica_type)

    def min_available(self, replica_type: str) -> int:
        """Return how many replicas of a type suffice for the job to start."""
        return self.number_of_replicas(replica_type)

    def ranked_types(self) -> Sequence[str]:
        """Return the types whose replicas are one process each, in the order of their ranks.

        By default none: failures are then reported without a rank.
        """
        return ()

    def address(self, replica_type: str, replica_index: int) -> str:
        """Return the host name of a replica within its namespace."""
        return self.job.host_name(Replica(replica_type, replica_index))

    def port(self, replica_type: str) -> int:
        """Return the port that the replicas of a type listen on."""
        spec = self.job.replica_spec(replica_type)
        return spec.port if spec else self.default_port()

    @abc.abstractmethod
    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        """Return the variables to add to the environment of one replica.

        The user's variables of the same name take precedence, except for Kubeflow's kinds. A value
        that is not a string is used as core/v1 ``valueFrom``.
        """

    def mutate_pod_spec(self, pod_spec: Mapping[str, Any], replica: Replica) -> Mapping[str, Any]:
        """Return a replica's pod spec with changes other than environment and volumes."""
        return pod_spec

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterable[Dependent]:
        """Return the job's objects other than pods and services, given the running replicas.

        ``present`` are the replicas whose pods exist and are owned by this job; None means all.
        """
        return ()

    def secrets(self) -> Iterable[Dependent]:
        """Return the secrets to create before the first pods; the controller never reads them."""
        return ()

"""What Kubeflow's job kinds share: how replica types are spelt, who decides, who is a master.

A kind is a subclass that states its names and its environment; see :mod:`.pytorch` for one.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from dlctl.api.job import Replica, SuccessPolicy
from dlctl.frameworks.dljob import DLJob


class KubeflowJob(DLJob, abstract=True):
    """One of Kubeflow's jobs: ``<tag>ReplicaSpecs`` maps replica types to specs.

    Beside what every framework states, a subclass states:

    - ``field_prefix``: begins the field of replica specs, ``tf`` in ``tfReplicaSpecs``;
    - ``port_name``: the name of the port where replicas meet;
    - ``default_restart_policy``: of replicas that say nothing.
    """

    field_prefix: ClassVar[str]
    port_name: ClassVar[str]
    default_restart_policy: ClassVar[str] = "Never"
    sets_env_in_all_containers = True
    # Served beside v1, in the same form.
    older_versions: ClassVar[Sequence[str]] = ()
    # What replica types were called once, by what they are now; in lower case.
    type_aliases: ClassVar[Mapping[str, str]] = {}
    # How replica types are spelt, where it is not with one capital.
    type_names: ClassVar[Mapping[str, str]] = {}
    # How many replicas of a type there are that says nothing, where it is not one.
    default_replicas: ClassVar[Mapping[str, int]] = {}
    # Types of one replica, whose name goes without an index.
    unindexed_types: ClassVar[Collection[str]] = ()
    # Types whose pods are held back until all replicas of the others run.
    gated_types: ClassVar[Collection[str]] = ()
    # Types whose replicas are not counted any more when the job has ended.
    uncounted_after_finish: ClassVar[Collection[str]] = ()
    # The reasons of conditions that are not the kind and the condition's type, by type.
    reason_by_condition: ClassVar[Mapping[str, str]] = {}
    # The reason of the event about a child whose name is taken; none if empty.
    name_conflict_reason: ClassVar[str] = ""
    # Whether ``kubectl get`` shows the age before the state.
    shows_age_first: ClassVar[bool] = False
    # Whether ``kubectl scale`` sets the number of workers.
    is_scalable: ClassVar[bool] = False
    # Whether replicas are dialled by name: else there are neither services nor a port.
    has_services: ClassVar[bool] = True
    # Whether a container must have the framework's name.
    requires_container_name: ClassVar[bool] = True

    @classmethod
    def type_name(cls, replica_type: str) -> str:
        """Return a replica type as users write it: ``Worker``."""
        return cls.type_names.get(replica_type, replica_type.capitalize())

    @classmethod
    def controller_name(cls) -> str:
        """Return the name that training-operator's labels and events have for the controller."""
        return f"{cls.job_type.lower()}-controller"

    def success_policy(self) -> SuccessPolicy:
        """Return whose fate is the job's: the master's where there is one, else the workers'."""
        masters = tuple(self.replicas_of("master"))
        if masters:
            return SuccessPolicy(success_replicas=masters, running_replicas=masters)
        workers = tuple(self.replicas_of("worker"))
        return SuccessPolicy(success_replicas=workers, running_replicas=workers)

    def is_master(self, replica: Replica) -> bool:
        """Tell whether a replica's pod is labelled as the one to ask for the job's logs."""
        return replica.type == "master"

    def namespaced_messages(self) -> bool:
        """Tell whether messages call the job by its namespace and name, or by its name alone."""
        return not self.number_of_replicas("master")

    def replicas_of(self, replica_type: str) -> Sequence[Replica]:
        return _replicas(replica_type, self.number_of_replicas(replica_type))


# A large job is read again and again, and most of that time would go into these.
@lru_cache(maxsize=8)
def _replicas(replica_type: str, count: int) -> Sequence[Replica]:
    return tuple(Replica(replica_type, index) for index in range(count))


def compact_json(value: Any) -> str:
    """Return JSON as Go writes it, without blanks: some programs compare it as text."""
    return json.dumps(value, separators=(",", ":"))

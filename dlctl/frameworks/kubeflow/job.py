"""The common base of Kubeflow's frameworks: success policy and master replica.

A framework is a subclass with its environment; the API of its jobs is defined in
:mod:`dlctl.dialects.kubeflow.kinds`.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dlctl.api.job import Replica, SuccessPolicy
from dlctl.frameworks.dljob import DLJob


class KubeflowJob(DLJob, abstract=True):
    """One of Kubeflow's jobs: the master determines its outcome, or without one the workers."""

    sets_env_in_all_containers = True

    def success_policy(self) -> SuccessPolicy:
        """Return the policy: the masters decide if they are listed, else the workers."""
        return self.policy_of("master" if self.has_replica_type("master") else "worker")

    def policy_of(self, replica_type: str) -> SuccessPolicy:
        """Return the policy by which the replicas of one type decide.

        If it is listed with 0 replicas, a job that has started nonetheless ends with its workers.
        """
        replicas = tuple(self.replicas_of(replica_type))
        is_empty = self.has_replica_type(replica_type) and not replicas
        deciding = tuple(self.replicas_of("worker")) if is_empty else replicas
        return SuccessPolicy(
            success_replicas=deciding, running_replicas=deciding, succeeds_immediately=is_empty
        )

    def has_replica_type(self, replica_type: str) -> bool:
        """Return whether the job lists a type, even with 0 replicas."""
        return self.job.replica_spec(replica_type) is not None

    def is_master(self, replica: Replica) -> bool:
        """Return whether a replica's pod has the master label, by which clients find the logs."""
        return replica.type == "master"

    def replicas_of(self, replica_type: str) -> Sequence[Replica]:
        return _replicas(replica_type, self.number_of_replicas(replica_type))


# Cached: large jobs are decoded often, and this would take most of the time.
@lru_cache(maxsize=8)
def _replicas(replica_type: str, count: int) -> Sequence[Replica]:
    return tuple(Replica(replica_type, index) for index in range(count))


def compact_json(value: Any) -> str:
    """Return JSON as Go writes it, without blanks: some programs compare it as text."""
    return json.dumps(value, separators=(",", ":"))

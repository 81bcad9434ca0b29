"""TensorFlow in Kubeflow: a chief or master, parameter servers, workers, an evaluator."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs

from dlctl.api.job import Replica, ReplicaSpec, SuccessPolicy
from dlctl.frameworks.kubeflow.job import KubeflowJob, compact_json

_ALL_WORKERS = "AllWorkers"


class KubeflowTFJob(KubeflowJob):
    """Distributed TensorFlow, configured by TF_CONFIG; without a chief, worker 0 decides."""

    job_type = "TFJob"
    replica_types = ["chief", "master", "ps", "worker", "evaluator"]
    container_properties = {"name": "tensorflow", "ports": [2222]}
    sets_env_in_all_containers = False

    def success_policy(self) -> SuccessPolicy:
        tolerated = frozenset(self._tolerated_types())
        # At most one of them is listed.
        for chief in ("chief", "master"):
            if self.has_replica_type(chief):
                return attrs.evolve(self.policy_of(chief), tolerated_types=tolerated)
        policy = attrs.evolve(self.policy_of("worker"), tolerated_types=tolerated)
        if self.job.spec.get("successPolicy") == _ALL_WORKERS:
            return policy
        return attrs.evolve(policy, success_replicas=policy.success_replicas[:1])

    def is_master(self, replica: Replica) -> bool:
        if any(self._chiefs()):
            return replica.type in ("chief", "master")
        return replica == Replica("worker", 0)

    def address(self, replica_type: str, replica_index: int) -> str:
        domain = self.job.defaults.cluster_domain
        host = f"{super().address(replica_type, replica_index)}.{self.job.key.namespace}.svc"
        return f"{host}.{domain}" if domain else host

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        if self.job.total_replicas == 1:
            return {}
        task = compact_json({"type": replica_spec.type, "index": replica_index})
        if self._has_dynamic_workers:
            cluster = compact_json(self._sparse_cluster(replica_spec.type, replica_index))
            return {"TF_CONFIG": f'{{"cluster":{cluster},"task":{task}}}'}
        config = f'{{"cluster":{self._cluster},"task":{task},"environment":"cloud"}}'
        return {"TF_CONFIG": config}

    @property
    def _has_dynamic_workers(self) -> bool:
        return bool(self.job.spec.get("enableDynamicWorker"))

    def _tolerated_types(self) -> Iterator[str]:
        workers = self.job.replica_spec("worker")
        if self._has_dynamic_workers and workers:
            # ExitCode names the codes that fail the job; with a failure policy, none does.
            by_code = workers.retry_policy.goes_by_exit_code
            if not by_code or self.job.has_failure_policy:
                yield workers.type

    def _chiefs(self) -> list[Replica]:
        return [*self.replicas_of("chief"), *self.replicas_of("master")]

    @cached_property
    def _cluster(self) -> str:
        # Cached: the same for all replicas, and proportional to their number.
        return compact_json(
            {
                type_: self._addresses(type_)
                for type_ in sorted(self.replica_types)
                if self.job.replica_spec(type_) is not None
            }
        )

    def _addresses(self, type_: str) -> list[str]:
        port = self.port(type_)
        return [f"{self.address(type_, r.index)}:{port}" for r in self.replicas_of(type_)]

    def _sparse_cluster(self, type_: str, index: int) -> Mapping[str, Any]:
        """Return the part of a cluster with a varying number of workers that one task needs."""
        own = f"{self.address(type_, index)}:{self.port(type_)}"
        if type_ == "ps":
            return {"worker": {}, "ps": [own]}
        if type_ == "worker":
            return {"worker": {str(index): own}, "ps": self._addresses("ps")}
        return {"worker": {}, "ps": []}

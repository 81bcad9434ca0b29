"""PyTorch: a master and workers that meet there, or workers that torchrun gathers."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dlctl.api.job import Deciders, Replica, ReplicaSpec
from dlctl.frameworks.kubeflow.job import KubeflowJob


class PyTorchJob(KubeflowJob):
    """Distributed PyTorch; with an elastic policy, as many workers as there happen to be."""

    job_type = "PyTorchJob"
    tag = "pytorch"
    replica_types = ["master", "worker"]
    container_properties = {"name": "pytorch", "ports": [23456]}
    port_name = "pytorchjob-port"
    restart_policy = "OnFailure"
    scales = True

    def deciders(self) -> Deciders:
        deciders = super().deciders()
        if self._elastic and not self.number_of_replicas("master"):
            return attrs.evolve(deciders, one_is_enough=True)
        return deciders

    def is_master(self, replica: Replica) -> bool:
        first = "master" if self.number_of_replicas("master") else "worker"
        return replica == Replica(first, 0)

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        return dict(self._environment(Replica(replica_spec.type, replica_index)))

    def _environment(self, replica: Replica) -> Iterator[tuple[str, str]]:
        yield "PYTHONUNBUFFERED", "1"
        processes = str(self.job.spec.get("nprocPerNode") or "auto")
        if self.number_of_replicas("master"):
            each = int(processes) if processes.isdecimal() else 1
            rank = replica.index + (replica.type == "worker")
            port = str(self.port("master"))
            yield from (("MASTER_PORT", port), ("PET_MASTER_PORT", port))
            yield "MASTER_ADDR", self.address("master", 0)
            yield "PET_MASTER_ADDR", self.address("master", 0)
            yield "WORLD_SIZE", str(self.job.size * each)
            yield from (("RANK", str(rank)), ("PET_NODE_RANK", str(rank)))
        if not self._elastic.get("nProcPerNode"):
            yield "PET_NPROC_PER_NODE", processes
        if self._elastic:
            yield from self._rendezvous(self._elastic)
        else:
            yield "PET_NNODES", str(self.job.size)

    @property
    def _elastic(self) -> Mapping[str, Any]:
        policy = self.job.spec.get("elasticPolicy")
        return policy if isinstance(policy, Mapping) else {}

    def _rendezvous(self, policy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        workers = self.number_of_replicas("worker")
        least = policy.get("minReplicas") or policy.get("maxReplicas") or workers
        most = policy.get("maxReplicas") or policy.get("minReplicas") or workers
        host = policy.get("rdzvHost") or self.address("worker", 0)
        port = policy.get("rdzvPort") or self.port("worker")
        yield "PET_RDZV_ENDPOINT", f"{host}:{port}"
        yield "PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")
        yield "PET_NNODES", f"{least}:{most}"
        if policy.get("maxRestarts") is not None:
            yield "PET_MAX_RESTARTS", str(policy["maxRestarts"])
        if policy.get("nProcPerNode") is not None:
            yield "PET_NPROC_PER_NODE", str(policy["nProcPerNode"])
        if policy.get("rdzvId"):
            yield "PET_RDZV_ID", str(policy["rdzvId"])
        if policy.get("rdzvConf"):
            pairs = (f"{pair.get('key')}={pair.get('value')}" for pair in policy["rdzvConf"])
            yield "PET_RDZV_CONF", ",".join(pairs)
        if policy.get("standalone"):
            yield "PET_STANDALONE", ""

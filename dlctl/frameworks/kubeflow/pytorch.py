"""PyTorch: a master and workers that connect to it, or workers that torchrun gathers."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.objects.dependents import Dependent
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.kubeflow.pytorch_init import PyTorchInit, init_containers
from dlctl.frameworks.kubeflow.torch_elastic import HORIZONTAL_POD_AUTOSCALERS, ElasticPolicy
from dlctl.frameworks.kubeflow.torch_restarts import torchrun_environment
from dlctl.frameworks.pod_changes import append_items

# A number of processes per node; torchrun interprets other values, such as "auto" and "gpu".
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")


class PyTorchJob(KubeflowJob):
    """Distributed PyTorch; with an elastic policy, a varying number of workers."""

    job_type = "PyTorchJob"
    replica_types = ["master", "worker"]
    container_properties = {"name": "pytorch", "ports": [23456]}
    dependent_resources = (HORIZONTAL_POD_AUTOSCALERS,)

    def success_policy(self) -> SuccessPolicy:
        policy = super().success_policy()
        if ElasticPolicy.from_job(self.job) and not self.number_of_replicas("master"):
            return attrs.evolve(policy, any_succeeds=True)
        return policy

    def ranked_types(self) -> Sequence[str]:
        # torchrun may start several processes in a replica, or assigns the ranks itself.
        under_torchrun = self.job.spec.get("nprocPerNode") or self.job.spec.get("elasticPolicy")
        return () if under_torchrun else self.replica_types

    def is_master(self, replica: Replica) -> bool:
        first = "master" if self.number_of_replicas("master") else "worker"
        return replica == Replica(first, 0)

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        replica = Replica(replica_spec.type, replica_index)
        return {**dict(self._environment(replica)), **torchrun_environment(self.job, replica_spec)}

    def mutate_pod_spec(self, pod_spec: Mapping[str, Any], replica: Replica) -> Mapping[str, Any]:
        if replica.type != "worker" or not self.number_of_replicas("master"):
            return pod_spec
        settings = self.job.defaults.of_framework(PyTorchInit)
        init = init_containers(settings, self.address("master", 0))
        return append_items(pod_spec, initContainers=init)

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Dependent]:
        elastic = ElasticPolicy.from_job(self.job)
        if elastic and (autoscaler := elastic.autoscaler(self.job)):
            yield autoscaler

    def min_available(self, replica_type: str) -> int:
        replicas = super().min_available(replica_type)
        elastic = ElasticPolicy.from_job(self.job)
        return (
            min(elastic.min_replicas, replicas)
            if elastic and replica_type == "worker"
            else replicas
        )

    def _environment(self, replica: Replica) -> Iterator[tuple[str, str]]:
        yield "PYTHONUNBUFFERED", "1"
        elastic = ElasticPolicy.from_job(self.job)
        given = self.job.spec.get("nprocPerNode")
        processes = str(given or "auto")
        if self.number_of_replicas("master"):
            processes_per_node = int(processes) if _NUMBER.fullmatch(processes) else 1
            rank = replica.index + (replica.type == "worker")
            port = str(self.port("master"))
            yield from (("MASTER_PORT", port), ("PET_MASTER_PORT", port))
            yield "MASTER_ADDR", self.address("master", 0)
            yield "PET_MASTER_ADDR", self.address("master", 0)
            yield "WORLD_SIZE", str(self.job.total_replicas * processes_per_node)
            yield from (("RANK", str(rank)), ("PET_NODE_RANK", str(rank)))
        if given or elastic is None or elastic.nproc_per_node is None:
            yield "PET_NPROC_PER_NODE", processes
        if elastic:
            yield from elastic.env(self.address("worker", 0), self.port("worker"))
        else:
            yield "PET_NNODES", str(self.job.total_replicas)

"""PyTorch as pytorch-operator ran it at first: a master and workers that meet there."""

from collections.abc import Mapping, Sequence

from dlctl.api.job import ReplicaSpec
from dlctl.frameworks.dljob import DLJob


class LegacyPyTorchJob(DLJob):
    """Distributed PyTorch by rank; the master decides."""

    job_type = "PyTorchJob"
    replica_types = ["master", "worker"]
    container_properties = {"name": "pytorch", "ports": [23456]}
    singletons = ["master"]

    def ranked_types(self) -> Sequence[str]:
        return self.replica_types

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, str]:
        is_worker = replica_spec.type == "worker"
        return {
            "MASTER_PORT": str(self.port("master")),
            # The master's own name may not resolve yet.
            "MASTER_ADDR": self.address("master", 0) if is_worker else "localhost",
            "WORLD_SIZE": str(self.job.total_replicas),
            "RANK": str(replica_index + is_worker),
            "PYTHONUNBUFFERED": "0",
        }

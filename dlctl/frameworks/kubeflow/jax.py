"""JAX: workers only, which connect to the first one."""

from collections.abc import Mapping, Sequence
from typing import Any

from dlctl.api.job import Replica, ReplicaSpec
from dlctl.frameworks.kubeflow.job import KubeflowJob


class JAXJob(KubeflowJob):
    """Distributed JAX; process 0 is the coordinator."""

    job_type = "JAXJob"
    replica_types = ["worker"]
    container_properties = {"name": "jax", "ports": [6666]}

    def ranked_types(self) -> Sequence[str]:
        return self.replica_types

    def is_master(self, replica: Replica) -> bool:
        return replica.index == 0

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        return {
            "PYTHONUNBUFFERED": "1",
            "COORDINATOR_PORT": str(self.port("worker")),
            "COORDINATOR_ADDRESS": self.address("worker", 0),
            "NUM_PROCESSES": str(self.job.total_replicas),
            "PROCESS_ID": str(replica_index),
        }

"""PaddlePaddle: workers only, or a master that serves parameters and workers that train."""

from collections.abc import Mapping
from typing import Any

from dlctl.api.job import Replica, ReplicaSpec
from dlctl.frameworks.kubeflow.job import KubeflowJob


class PaddleJob(KubeflowJob):
    """Distributed PaddlePaddle; its launcher gathers the nodes at the first one."""

    job_type = "PaddleJob"
    replica_types = ["master", "worker"]
    container_properties = {"name": "paddle", "ports": [36543]}

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        served = self.number_of_replicas("master") > 0
        first = Replica("master" if served else "worker", 0)
        port = self.port(first.type)
        environment: dict[str, Any] = {
            "PYTHONUNBUFFERED": "1",
            "PADDLE_JOB_ID": self.job.key.name,
            "PADDLE_NNODES": str(self.job.total_replicas),
        }
        if Replica(replica_spec.type, replica_index) == first:
            # By address: its own name may not resolve yet.
            environment["POD_IP_DUMMY"] = {"fieldRef": {"fieldPath": "status.podIP"}}
            environment["PADDLE_MASTER"] = f"$(POD_IP_DUMMY):{port}"
        else:
            environment["PADDLE_MASTER"] = f"{self.address(first.type, 0)}:{port}"
        if served:
            role = "SERVER" if replica_spec.type == "master" else "TRAINER"
            environment[f"PADDLE_{role}_NUM"] = "1"
        return environment

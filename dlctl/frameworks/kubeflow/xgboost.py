"""XGBoost and LightGBM: a master that runs the tracker, and workers."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from dlctl.api.job import ReplicaSpec
from dlctl.frameworks.kubeflow.job import KubeflowJob


class XGBoostJob(KubeflowJob):
    """Distributed gradient boosting; the master determines the outcome."""

    job_type = "XGBoostJob"
    replica_types = ["master", "worker"]
    singletons = ["master"]
    container_properties = {"name": "xgboost", "ports": [9999]}

    def ranked_types(self) -> Sequence[str]:
        return self.replica_types

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        ahead = self.number_of_replicas("master") if replica_spec.type == "worker" else 0
        environment = {
            "MASTER_PORT": str(self.port("master")),
            "MASTER_ADDR": self.address("master", 0),
            "WORLD_SIZE": str(self.job.total_replicas),
            "RANK": str(replica_index + ahead),
            "PYTHONUNBUFFERED": "1",
        }
        if self.job.total_replicas > 1:
            environment["WORKER_PORT"] = str(self.port("worker"))
            environment["WORKER_ADDRS"] = self._workers
        return environment

    @cached_property
    def _workers(self) -> str:
        return ",".join(
            self.address("worker", index) for index in range(self.job.total_replicas - 1)
        )

"""A ring all-reduce: every member knows the master, its rank and the size of the ring."""

from collections.abc import Mapping

from dlctl.api import ReplicaSpec
from dlctl.frameworks import DLJob


class RingJob(DLJob):
    """One master and any number of workers, joined in a ring."""

    job_type = "RingJob"
    replica_types = ["master", "worker"]
    container_properties = {"ports": [7000], "volumes": ["/scratch"]}
    singletons = ["master"]

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, str]:
        return {
            "RING_MASTER": f"{self.address('master', 0)}:{self.port('master')}",
            "RING_RANK": str(replica_index + (replica_spec.type == "worker")),
            "RING_SIZE": str(1 + self.number_of_replicas("worker")),
        }

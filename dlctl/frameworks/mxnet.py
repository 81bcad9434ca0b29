"""MXNet: a scheduler, parameter servers and workers, configured by DMLC_* variables."""

from collections.abc import Mapping

from dlctl.api.job import ReplicaSpec
from dlctl.frameworks.dljob import DLJob


class MXJob(DLJob):
    """Distributed MXNet on the parameter server ps-lite."""

    job_type = "MXJob"
    replica_types = ["scheduler", "server", "worker"]
    container_properties = {"name": "mxnet", "ports": [9091]}
    singletons = ["scheduler"]

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, str]:
        return {
            "DMLC_PS_ROOT_PORT": str(self.port("scheduler")),
            "DMLC_PS_ROOT_URI": self.address("scheduler", 0),
            "DMLC_NUM_SERVER": str(self.number_of_replicas("server")),
            "DMLC_NUM_WORKER": str(self.number_of_replicas("worker")),
            "DMLC_ROLE": replica_spec.type,
            # Without it the scheduler binds to DMLC_PS_ROOT_URI, which is a service's name and not
            # an address of its own; with it, to all of its addresses.
            "DMLC_USE_KUBERNETES": "1",
        }

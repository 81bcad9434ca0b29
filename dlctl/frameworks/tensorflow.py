"""TensorFlow: the cluster is described in TF_CONFIG."""

import json
from collections.abc import Mapping

from dlctl.api.job import ReplicaSpec
from dlctl.frameworks.dljob import DLJob


class TFJob(DLJob):
    """Distributed TensorFlow with parameter servers and workers; worker 0 is the chief."""

    job_type = "TFJob"
    replica_types = ["ps", "worker"]
    container_properties = {"name": "tensorflow", "ports": [2222]}
    chief_type = "worker"

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, str]:
        cluster = {
            type_: [
                f"{self.address(type_, index)}:{self.port(type_)}"
                for index in range(self.number_of_replicas(type_))
            ]
            for type_ in self.replica_types
            if self.number_of_replicas(type_)
        }
        config = {
            "cluster": cluster,
            "task": {"type": replica_spec.type, "index": replica_index},
            "environment": "cloud",
        }
        return {"TF_CONFIG": json.dumps(config, separators=(",", ":"))}


class MasteredTFJob(TFJob):
    """TensorFlow as tf-operator ran it at first: a master, parameter servers and workers."""

    replica_types = ["master", "ps", "worker"]
    chief_type = "master"

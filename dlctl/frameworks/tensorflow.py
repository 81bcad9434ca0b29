"""TensorFlow, configured by TF_CONFIG."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property

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
        task = f'{{"type":"{replica_spec.type}","index":{replica_index}}}'
        config = f'{{"cluster":{self._cluster},"task":{task},"environment":"cloud"}}'
        return {"TF_CONFIG": config}

    # Cached: the same for all replicas, and proportional to their number.
    @cached_property
    def _cluster(self) -> str:
        cluster = {
            type_: list(self._addresses(type_))
            for type_ in self.replica_types
            if self.get_replica_spec(type_) is not None
        }
        return json.dumps(cluster, separators=(",", ":"))

    def _addresses(self, replica_type: str) -> Iterator[str]:
        port = self.port(replica_type)
        for index in range(self.number_of_replicas(replica_type)):
            yield f"{self.address(replica_type, index)}:{port}"


class LegacyTFJob(TFJob):
    """TensorFlow with tf-operator's first layout: a master, parameter servers and workers."""

    replica_types = ["master", "ps", "worker"]
    chief_type = "master"
    singletons = ["master"]

"""MXNet in Kubeflow: ps-lite's environment, MX_CONFIG, and the roles of the TVM tuner."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from dlctl.api.job import Replica, ReplicaSpec, SuccessPolicy
from dlctl.frameworks.kubeflow.job import KubeflowJob, compact_json

TUNER_KEY: Final = "tuner-server-key"


class KubeflowMXJob(KubeflowJob):
    """Distributed MXNet: training (MXTrain) or tuning of the compiler (MXTune)."""

    job_type = "MXJob"
    replica_types = ["scheduler", "server", "worker", "tunertracker", "tunerserver", "tuner"]
    container_properties = {"name": "mxnet", "ports": [9091]}

    def success_policy(self) -> SuccessPolicy:
        if self.job.spec.get("jobMode") == "MXTune":
            # Tracker and servers never exit; the tuner does.
            return self.policy_of("tuner")
        has_servers = self.number_of_replicas("server") > 0
        return self.policy_of(
            "scheduler" if self.has_replica_type("scheduler") or has_servers else "worker"
        )

    def is_master(self, replica: Replica) -> bool:
        return replica.type == "server"

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        type_ = replica_spec.type
        scheduler = self.job.replica_spec("scheduler")
        task = compact_json({"type": type_, "index": replica_index})
        environment = {
            "MX_CONFIG": f'{{"cluster":{self._cluster},"labels":{self._labels},"task":{task}}}',
            "DMLC_PS_ROOT_PORT": str(scheduler.port if scheduler else 0),
            "DMLC_PS_ROOT_URI": self.address("scheduler", 0) if scheduler else "",
            "DMLC_NUM_SERVER": str(self.number_of_replicas("server")),
            "DMLC_NUM_WORKER": str(self.number_of_replicas("worker")),
            "DMLC_ROLE": type_,
            "DMLC_USE_KUBERNETES": "1",
        }
        if type_ == "worker":
            environment["DMLC_WORKER_ID"] = str(replica_index)
        return environment

    # Cached: the same for all replicas, and proportional to their number.
    @cached_property
    def _cluster(self) -> str:
        return compact_json({spec.type: self._addresses(spec) for spec in self._specs})

    @cached_property
    def _labels(self) -> str:
        return compact_json({spec.type: _tuner_key(spec) for spec in self._specs})

    @property
    def _specs(self) -> list[ReplicaSpec]:
        return sorted(self.job.replica_specs, key=lambda spec: spec.type)

    def _addresses(self, spec: ReplicaSpec) -> list[Mapping[str, Any]]:
        return [
            {"url": self.address(spec.type, replica.index), "port": spec.port}
            for replica in self.replicas_of(spec.type)
        ]


def _tuner_key(spec: ReplicaSpec) -> str:
    annotations = (spec.template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(TUNER_KEY, ""))

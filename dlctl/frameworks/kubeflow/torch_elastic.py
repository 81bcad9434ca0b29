"""Elastic PyTorch jobs: torchrun's settings, and the autoscaler that changes the size.

Pure; the policy is the user's ``elasticPolicy``, where each limit defaults to the other one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.api.objects.dependents import Dependent
from dlctl.errors import InvalidJobError

HORIZONTAL_POD_AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
ELASTIC_POLICY: Final = "spec.elasticPolicy"


@attrs.frozen
class ElasticPolicy:
    """How many workers there may be, and how they find each other."""

    fields: Mapping[str, Any]
    min_replicas: int
    max_replicas: int

    @classmethod
    def from_job(cls, job: Job) -> Self | None:
        """Return a job's policy; None if it has none, but not if it is empty.

        :raises InvalidJobError: naming the field and the fix.
        """
        policy = job.spec.get("elasticPolicy")
        if policy is None:
            return None
        if not isinstance(policy, Mapping):
            raise InvalidJobError("must be an object", field=ELASTIC_POLICY)
        minimum, maximum = _read_limit(policy, "minReplicas"), _read_limit(policy, "maxReplicas")
        pairs = policy.get("rdzvConf") or []
        if not isinstance(pairs, list) or not all(isinstance(pair, Mapping) for pair in pairs):
            raise InvalidJobError("must be a list of objects", field=f"{ELASTIC_POLICY}.rdzvConf")
        single = next((n for n in (minimum, maximum) if n is not None), job.replica_count("worker"))
        return cls(
            policy, single if minimum is None else minimum, single if maximum is None else maximum
        )

    @property
    def nproc_per_node(self) -> Any:
        """Return the number of processes per node from the policy's own, deprecated field."""
        return self.fields.get("nProcPerNode")

    def env(self, host: str, port: int) -> Iterator[tuple[str, str]]:
        """Yield torchrun's variables; host and port are the first worker's."""
        policy = self.fields
        host = policy.get("rdzvHost") or host
        yield "PET_RDZV_ENDPOINT", f"{host}:{policy.get('rdzvPort') or port}"
        yield "PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")
        yield "PET_NNODES", f"{self.min_replicas}:{self.max_replicas}"
        if policy.get("maxRestarts") is not None:
            yield "PET_MAX_RESTARTS", str(policy["maxRestarts"])
        if self.nproc_per_node is not None:
            yield "PET_NPROC_PER_NODE", str(self.nproc_per_node)
        if policy.get("rdzvId"):
            yield "PET_RDZV_ID", str(policy["rdzvId"])
        if policy.get("rdzvConf"):
            given = policy["rdzvConf"]
            pairs = (f"{pair.get('key') or ''}={pair.get('value') or ''}" for pair in given)
            yield "PET_RDZV_CONF", ",".join(pairs)
        if policy.get("standalone"):
            yield "PET_STANDALONE", ""

    def autoscaler(self, job: Job) -> Dependent | None:
        """Return the autoscaler of the workers, if the policy has metrics."""
        metrics = self.fields.get("metrics")
        if metrics is None:
            return None
        target = {
            "apiVersion": job.resource.api_version,
            "kind": job.resource.kind,
            "name": job.key.name,
        }
        spec = {
            "scaleTargetRef": target,
            "minReplicas": self.min_replicas,
            "maxReplicas": self.max_replicas,
            "metrics": metrics,
        }
        return Dependent(HORIZONTAL_POD_AUTOSCALERS, job.key.name, {"spec": spec})


def _read_limit(policy: Mapping[str, Any], name: str) -> int | None:
    value = policy.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidJobError("must be an integer of 0 or more", field=f"{ELASTIC_POLICY}.{name}")
    return value

"""Elastic PyTorch jobs: what torchrun is told, and the autoscaler that changes their size.

Pure; the policy is the user's ``elasticPolicy``, whose limits stand in for one another.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import attrs

from dlctl.api.companions import Companion
from dlctl.api.job import Job
from dlctl.api.meta import Resource
from dlctl.errors import InvalidJobError

AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
_FIELD: Final = "spec.elasticPolicy"


@attrs.frozen
class ElasticPolicy:
    """How many workers there may be, and how they find each other."""

    fields: Mapping[str, Any]
    least: int
    most: int

    @classmethod
    def of(cls, job: Job) -> Self | None:
        """Read a job's policy; return nothing if it has none, which an empty one is not.

        :raises InvalidJobError: naming the field and the fix.
        """
        policy = job.spec.get("elasticPolicy")
        if policy is None:
            return None
        if not isinstance(policy, Mapping):
            raise InvalidJobError("must be an object", field=_FIELD)
        least, most = _limit(policy, "minReplicas"), _limit(policy, "maxReplicas")
        pairs = policy.get("rdzvConf") or []
        if not isinstance(pairs, list) or not all(isinstance(pair, Mapping) for pair in pairs):
            raise InvalidJobError("must be a list of objects", field=f"{_FIELD}.rdzvConf")
        either = next((n for n in (least, most) if n is not None), job.count("worker"))
        return cls(policy, either if least is None else least, either if most is None else most)

    @property
    def processes(self) -> Any:
        """Return how many processes a node has, where that is said here, as it was once."""
        return self.fields.get("nProcPerNode")

    def environment(self, host: str, port: int) -> Iterator[tuple[str, str]]:
        """Yield what torchrun is told; host and port are the first worker's."""
        policy = self.fields
        host = policy.get("rdzvHost") or host
        yield "PET_RDZV_ENDPOINT", f"{host}:{policy.get('rdzvPort') or port}"
        yield "PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")
        yield "PET_NNODES", f"{self.least}:{self.most}"
        if policy.get("maxRestarts") is not None:
            yield "PET_MAX_RESTARTS", str(policy["maxRestarts"])
        if self.processes is not None:
            yield "PET_NPROC_PER_NODE", str(self.processes)
        if policy.get("rdzvId"):
            yield "PET_RDZV_ID", str(policy["rdzvId"])
        if policy.get("rdzvConf"):
            pairs = (f"{pair.get('key')}={pair.get('value')}" for pair in policy["rdzvConf"])
            yield "PET_RDZV_CONF", ",".join(pairs)
        if policy.get("standalone"):
            yield "PET_STANDALONE", ""

    def autoscaler(self, job: Job) -> Companion | None:
        """Return what scales the workers, if the policy says by which metrics."""
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
            "minReplicas": self.least,
            "maxReplicas": self.most,
            "metrics": metrics,
        }
        return Companion(AUTOSCALERS, job.key.name, {"spec": spec})


def _limit(policy: Mapping[str, Any], name: str) -> int | None:
    value = policy.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidJobError("must be an integer of 0 or more", field=f"{_FIELD}.{name}")
    return value

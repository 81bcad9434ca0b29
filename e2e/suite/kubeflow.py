"""Jobs of Kubeflow's kinds for the tests: small, and where they run is for the tests to say."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from e2e.suite import jobs


@attrs.frozen
class KubeflowKind:
    """A kind: what its fields and containers are called, and the least of replicas it takes."""

    name: str
    tag: str
    container: str
    replicas: Mapping[str, int]

    @property
    def resource(self) -> str:
        return f"{self.name.lower()}s.kubeflow.org"

    def called(self, what: str) -> str:
        """Return the name of a job of this kind; those of other kinds must have others."""
        return f"{what}-{self.tag}"

    def job(
        self, what: str, command: Sequence[str], *, pod: JSON | None = None, **spec: Any
    ) -> JSON:
        """Return a job whose replicas all run a command; ``pod`` are fields of each pod's spec."""
        container = {"name": self.container, "image": jobs.IMAGE, "command": list(command)}
        template = {"spec": {"containers": [container], **(pod or {})}}
        specs = {
            type_: {"replicas": count, "restartPolicy": "Never", "template": template}
            for type_, count in self.replicas.items()
        }
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": self.name,
            "metadata": {"name": self.called(what)},
            "spec": {f"{self.tag}ReplicaSpecs": specs, **spec},
        }


KINDS: Final = (
    KubeflowKind("TFJob", "tf", "tensorflow", {"Chief": 1, "Worker": 1}),
    KubeflowKind("PyTorchJob", "pytorch", "pytorch", {"Worker": 2}),
    KubeflowKind("XGBoostJob", "xgb", "xgboost", {"Master": 1, "Worker": 1}),
    KubeflowKind("MPIJob", "mpi", "mpi", {"Launcher": 1, "Worker": 1}),
    KubeflowKind("PaddleJob", "paddle", "paddle", {"Worker": 2}),
    KubeflowKind("JAXJob", "jax", "jax", {"Worker": 2}),
    KubeflowKind("MXJob", "mx", "mxnet", {"Scheduler": 1, "Worker": 1}),
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}
# Where there is no real node, so that nothing needs an image.
KWOK_NODE: Final[JSON] = {
    "nodeSelector": {"type": "kwok"},
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}],
}


def true_conditions(status: JSON) -> list[str]:
    return [c["type"] for c in status.get("conditions", ()) if c["status"] == "True"]

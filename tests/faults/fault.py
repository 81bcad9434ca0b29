"""One injected fault: a job, what is done to it, and the verdict that must follow."""

import shutil
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey
from dlctl.api.status.verdict import Cause
from dlctl.kube.client import Client
from dlctl.local.node.containers.control_groups import open_groups

NAMESPACE: Final = "default"
# Of Debian's packages, which are where the machine's own programs are.
PYTHON: Final = "/usr/bin/python3"
# With a policy, a gang is judged as a whole; without, a job fails with its first failed replica.
GANG: Final[JSON] = {"failurePolicy": {"maxRestarts": 0}}
MEMORY_LIMITS: Final = "memory limits"


@attrs.frozen
class Scene:
    """A job that runs, for what is done to it from outside."""

    client: Client
    name: str

    def pod(self, replica: str) -> ObjectKey:
        return ObjectKey(NAMESPACE, f"{self.name}-{replica}")


# Runs while the job does, and is cancelled once there is a verdict.
Inject = Callable[[Scene], Coroutine[Any, Any, None]]


@attrs.frozen
class Blame:
    """The part of a verdict that a fault determines; None where it does not."""

    cause: Cause
    replica: str = ""
    exit_code: int | None = None
    rank: int | None = None


@attrs.frozen
class Fault:
    """``says`` is part of the verdict's message; ``needs`` are programs and Python modules."""

    name: str
    job: JSON
    blame: Blame
    says: str = ""
    needs: Sequence[str] = ()
    inject: Inject | None = None

    @property
    def missing(self) -> str:
        """Return what it needs and this machine lacks; empty if nothing."""
        return ", ".join(name for name in self.needs if not _has(name))


@cache
def _has(name: str) -> bool:
    if name == MEMORY_LIMITS:
        groups = open_groups()
        groups.close()
        return "memory" in groups.parents
    if shutil.which(name):
        return True
    found = f"from importlib.util import find_spec as f; exit(not f({name!r}))"
    return not subprocess.run([PYTHON, "-c", found], check=False).returncode


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def python(script: str) -> list[str]:
    return [PYTHON, "-c", script]


def replicas(count: int, command: Sequence[str] = (), **pod: Any) -> JSON:
    """Return a replica spec; ``pod`` are fields of the pod's spec, ``container`` of its first."""
    container = {"image": "any", **pod.pop("container", {})}
    if command:
        container["command"] = list(command)
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container], **pod}
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}


def kubeflow_job(kind: str, specs: JSON, version: str = "v1", **spec: Any) -> JSON:
    """Return a job of a Kubeflow kind by its replica specs; it is named by whoever runs it."""
    framework = kind.removesuffix("Job").lower()
    field = {"tf": "tfReplicaSpecs", "mpi": "mpiReplicaSpecs"}.get(
        framework, f"{framework}ReplicaSpecs"
    )
    container = "tensorflow" if framework == "tf" else framework
    for each in specs.values():
        each["template"]["spec"]["containers"][0].setdefault("name", container)
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {},
        "spec": {field: specs, **spec},
    }


def ddp(command: Sequence[str], workers: int = 1, **spec: Any) -> JSON:
    """Return a PyTorchJob whose master and workers run the same command."""
    specs = {"Master": replicas(1, command), "Worker": replicas(workers, command)}
    return kubeflow_job("PyTorchJob", specs, nprocPerNode="1", **spec)

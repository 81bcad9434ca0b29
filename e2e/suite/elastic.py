"""The elastic Horovod example as its users see it: output, workers, scalers.

The first worker prints the steps, with their times in seconds since the epoch.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl, KubectlError

NAME: Final = "elastic-training"
LAUNCHER: Final = f"{NAME}-launcher"
WORKERS: Final = f"training-job-name={NAME},training-job-role=worker"
# With the group, since other groups have such kinds too.
GROUP: Final = "kai.alibabacloud.com"
JOBS: Final = f"trainingjobs.{GROUP}"
SCALERS: Final = {"ScaleIn": f"scaleins.{GROUP}", "ScaleOut": f"scaleouts.{GROUP}"}
_EXAMPLES: Final = Path(__file__).parents[2] / "examples"
_STEP: Final = re.compile(r"([\d.]+) step (\d+) size (\d+) rank 0 loss [\d.]+$", re.MULTILINE)


@attrs.frozen
class Step:
    """A committed step: its time, its number, and the number of workers."""

    at: float
    number: int
    size: int


def submit(
    kubectl: Kubectl, prefix: str, *, steps: int, clean_pods: str = "", **worker: Any
) -> None:
    """Create the job of the manifest, with other images, and additional fields of its worker."""
    text = (_EXAMPLES / "horovod" / "elastic.yaml").read_text()
    job, script = yaml.safe_load_all(text.replace("image: dlctl/", f"image: {prefix}/"))
    if clean_pods:
        job["spec"]["cleanPodPolicy"] = clean_pods
    replicas = job["spec"]["etReplicaSpecs"]
    replicas["worker"].update(worker)
    (launcher,) = replicas["launcher"]["template"]["spec"]["containers"]
    for variable in launcher["env"]:
        if variable["name"] == "STEPS":
            variable["value"] = str(steps)
    kubectl.apply(script, job)


def scale(kubectl: Kubectl, kind: str, name: str, **what: Any) -> None:
    """Create a ScaleIn or ScaleOut with ``toDelete`` or ``toAdd``, and further fields."""
    spec = {"selector": {"name": NAME}, "timeout": 300, **what}
    kubectl.apply(
        {
            "apiVersion": "kai.alibabacloud.com/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def phase(kubectl: Kubectl, resource: str, name: str) -> str:
    found = kubectl.get(resource, name) or {}
    said: str = (found.get("status") or {}).get("phase") or ""
    return said


def until_phase(
    kubectl: Kubectl, resource: str, name: str, wanted: str, *, within_s: float
) -> None:
    """Wait for a phase; stop at one after which it cannot follow."""

    def probe() -> bool:
        now = phase(kubectl, resource, name)
        assert now == wanted or now not in ("Failed", "ScaleFailed"), f"{name} is {now}"
        return now == wanted

    kubectl.until(probe, within_s=within_s, what=f"{name} {wanted}")


def log(kubectl: Kubectl) -> str:
    """Return the launcher's output so far; empty before it runs."""
    try:
        return kubectl("logs", LAUNCHER)
    except KubectlError:
        return ""


def steps(said: str) -> Sequence[Step]:
    return [Step(float(at), int(number), int(size)) for at, number, size in _STEP.findall(said)]


def until_size(kubectl: Kubectl, size: int, *, within_s: float, after: float = 0) -> Step:
    """Return the first step by this many workers after a time."""

    def probe() -> Step | None:
        taken = (s for s in steps(log(kubectl)) if s.size == size and s.at > after)
        return next(taken, None)

    return kubectl.until(probe, within_s=within_s, what=f"a step of {size} workers")


def workers(kubectl: Kubectl) -> list[str]:
    """Return the names of the workers' pods that are not terminating."""
    pods: list[JSON] = kubectl.items("pods", WORKERS)
    return sorted(
        pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    )

"""Jobs in clusters with a gang scheduler, for tests of gangs."""

from typing import Any, Final

import attrs

from dlctl.api.defaults import JobDefaults
from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import PLACEMENT_HASH
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.builders import NOW, renderer_of, training_job

VOLCANO: Final = "volcano"
PLUGINS: Final = "scheduler-plugins-scheduler"


def ganged(wire: JSON, scheduler: str = VOLCANO, **job: Any) -> Renderer:
    """Return the renderer of a job in a cluster with this gang scheduler."""
    renderer = renderer_of(wire)
    defaults = JobDefaults(gang_scheduler_name=scheduler)
    return attrs.evolve(renderer, job=attrs.evolve(renderer.job, defaults=defaults, **job))


def training(policy: JSON | None = None, /, **counts: int) -> JSON:
    wire = training_job("PyTorchJob", **(counts or {"Master": 1, "Worker": 3}))
    if policy is not None:
        wire["spec"]["runPolicy"] = {"schedulingPolicy": policy}
    return wire


def resources(wire: JSON, type_: str, **resources: Any) -> None:
    """Set the resources of each replica of a type."""
    template = wire["spec"]["pytorchReplicaSpecs"][type_]["template"]
    template["spec"]["containers"][0]["resources"] = resources


def group(renderer: Renderer) -> JSON:
    dependent = renderer.gang.pod_group()
    assert dependent is not None
    return renderer.dependent(dependent)


def with_launcher(renderer: Renderer, *, last: bool) -> Renderer:
    """Make the master gated until the others run, or created after them."""
    master, *others = renderer.job.replica_specs
    master = attrs.evolve(master, gated=not last, create_last=last)
    return attrs.evolve(renderer, job=attrs.evolve(renderer.job, replica_specs=(master, *others)))


def membership(pod: JSON) -> JSON:
    """Return the annotations and labels that make a pod a member of its gang."""
    labels = {n: v for n, v in pod["metadata"]["labels"].items() if "pod-group" in n}
    return {**of_gang(pod["metadata"]["annotations"]), **labels}


def of_gang(annotations: JSON) -> JSON:
    return {name: value for name, value in annotations.items() if name != PLACEMENT_HASH}


def nothing(job: Job) -> Observed:
    return observe(job, Children(), NOW)

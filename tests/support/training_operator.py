"""Children of jobs as training-operator creates them, without anything of dlctl's own."""

from collections.abc import Iterator

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY_LABEL, PODS, SERVICES, Resource
from dlctl.reconcilers.children.renderer import Renderer


def operator_children(renderer: Renderer) -> Iterator[tuple[Resource, JSON]]:
    """Yield the children of a job in an order in which they can be created."""
    made = [(one.resource, renderer.dependent(one)) for one in renderer.framework.dependents([])]
    made += [(SERVICES, renderer.service(r)) for r in renderer.replicas_with_service()]
    made += [(PODS, renderer.pod(replica)) for replica in renderer.job.replicas]
    for resource, obj in made:
        # The label of dlctl, and the annotations and gates it adds.
        del obj["metadata"]["labels"][MANAGED_BY_LABEL]
        obj["metadata"].pop("annotations", None)
        obj.get("spec", {}).pop("schedulingGates", None)
        yield resource, obj

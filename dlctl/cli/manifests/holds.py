"""The fields of a manifest that hold a job back on an embedded cluster. Pure.

Each makes the job wait for a component that such a cluster lacks: another scheduler, node or
controller, or one that resumes jobs or removes scheduling gates.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlctl.api.json_types import JSON, ReadOnlyJSON
from dlctl.cli.manifests.loading import as_job_object
from dlctl.cli.manifests.pod_references import entries
from dlctl.cli.manifests.yaml_lines import Path
from dlctl.dialects.kind import Kind
from dlctl.local.node.node_object import NODE_NAME
from dlctl.local.node.scheduling_filters import DEFAULT_SCHEDULER


def held_job(kind: Kind, manifest: JSON) -> Iterator[tuple[Path, str]]:
    """Yield the fields of a valid job for which it would get no pods."""
    obj = kind.decode(as_job_object(kind, manifest))
    if obj.dialect.managed_by_external_controller(obj):
        yield ("spec", "runPolicy", "managedBy"), "that controller is not here: leave it out"
    elif obj.dialect.run_policy(obj).suspended:
        resumed = obj.dialect.suspension_patch(obj, suspended=False) or {}
        for path in _leaves(resumed):
            if path[0] == "metadata" or _value(manifest, path):
                yield path, "the job is suspended, and nobody resumes it here: set it to false"


def held_pods(
    spec: ReadOnlyJSON, path: Path, pods: Sequence[ReadOnlyJSON]
) -> Iterator[tuple[Path, str]]:
    """Yield the fields of a job or pod template, at ``path``, by which pods are not scheduled.

    ``pods`` are the specs of the job's pods: they lack what the job overrides in a template.
    """
    scheduler, node = spec.get("schedulerName"), spec.get("nodeName")
    if scheduler not in (None, "", DEFAULT_SCHEDULER) and _any(pods, "schedulerName", scheduler):
        where = (*path, "schedulerName")
        yield where, f'this machine has no scheduler "{scheduler}": leave it out'
    if node not in (None, "", NODE_NAME) and _any(pods, "nodeName", node):
        yield (*path, "nodeName"), f'the only node here is "{NODE_NAME}": leave it out'
    for index, gate in entries(spec, "schedulingGates"):
        if any(gate in (pod.get("schedulingGates") or ()) for pod in pods):
            where = (*path, "schedulingGates", index)
            yield where, f"nobody removes {gate.get('name')} here: leave it out"


def _any(pods: Sequence[ReadOnlyJSON], field: str, value: Any) -> bool:
    return any(pod.get(field) == value for pod in pods)


def _leaves(patch: ReadOnlyJSON, path: Path = ()) -> Iterator[Path]:
    for name, value in patch.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _value(manifest: ReadOnlyJSON, path: Path) -> Any:
    found: Any = manifest
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found

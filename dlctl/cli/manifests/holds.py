"""What holds up a job until somebody acts whom an embedded cluster does not have. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from dlctl.api.json_types import JSON, ReadOnlyJSON
from dlctl.cli.manifests.loading import as_job_object
from dlctl.cli.manifests.pod_references import entries
from dlctl.cli.manifests.yaml_lines import Path
from dlctl.dialects.kind import Kind
from dlctl.local.node.node_object import NODE_NAME
from dlctl.local.node.scheduling_filters import DEFAULT_SCHEDULER


def held_job(kind: Kind, manifest: JSON) -> Iterator[tuple[Path, str]]:
    """Yield the fields of a valid job for which it would get no pods, or none that is scheduled."""
    obj = kind.decode(as_job_object(kind, manifest))
    if obj.dialect.managed_by_external_controller(obj):
        yield ("spec", "runPolicy", "managedBy"), "that controller is not here: leave it out"
    elif obj.dialect.run_policy(obj).suspended:
        resumed = obj.dialect.suspension_patch(obj, suspended=False) or {}
        for path in _leaves(resumed):
            if path[0] == "metadata" or _value(manifest, path):
                yield path, "the job is suspended, and nobody resumes it here: set it to false"
    if isinstance(spec := manifest.get("spec"), Mapping):
        yield from _of_scheduler(spec, ("spec",))


def held_pods(spec: ReadOnlyJSON, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the fields of a pod template by which its pods wait; ``path`` is that of ``spec``."""
    yield from _of_scheduler(spec, path)
    if spec.get("nodeName") not in (None, "", NODE_NAME):
        yield (*path, "nodeName"), f'the only node here is "{NODE_NAME}": leave it out'
    for index, gate in entries(spec, "schedulingGates"):
        where = (*path, "schedulingGates", index)
        yield where, f"nobody removes {gate.get('name')} here: leave it out"


def _of_scheduler(spec: ReadOnlyJSON, path: Path) -> Iterator[tuple[Path, str]]:
    name = spec.get("schedulerName")
    if name not in (None, "", DEFAULT_SCHEDULER):
        where = (*path, "schedulerName")
        yield where, f'this machine has no scheduler "{name}": leave it out'


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

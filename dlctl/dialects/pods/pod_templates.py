"""Pod templates of replica specs, and their training containers.

The API server validates the values in templates. Only what its CRDs cannot is checked here, so that
nothing is created for a job whose pods it would refuse.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from dlctl.api.objects.kept_metadata import MAX_METADATA_BYTES
from dlctl.dialects.pods.pod_canonicalization import canonicalize_pod_template
from dlctl.errors import InvalidJobError, quoted

# Of the labels and other parts of a template of which each pod has its own copy in memory.
MAX_ITEMS: Final = 128
# Of the labels and finalizers of a template, with the labels that the frameworks add to them.
MAX_BYTES: Final = MAX_METADATA_BYTES // 2
_COUNTED: Final = (
    ("metadata", "labels"),
    ("metadata", "finalizers"),
    ("spec", "containers"),
    ("spec", "initContainers"),
    ("spec", "schedulingGates"),
)


def read_pod_template(value: Any, path: str, *, restart_policy: str = "") -> Mapping[str, Any]:
    """Read a pod template; its fields get their names of core/v1, whatever their case was.

    Without a restart policy of the replica, the template's decides: never, or on failure.

    :raises InvalidJobError: if it has no container, one without a name, a name given twice, a
        value of a wrong type, or too many labels and the like.
    """
    if value is None:
        raise InvalidJobError("is missing: give a pod template", field=path)
    template = canonicalize_pod_template(value, path)
    spec = template.get("spec", {})
    if not spec.get("containers"):
        problem = (
            "is empty: give a container" if "containers" in spec else "is missing: give a list"
        )
        raise InvalidJobError(problem, field=f"{path}.spec.containers")
    for index, container in enumerate(spec["containers"]):
        if not container.get("name"):
            where = f"{path}.spec.containers[{index}].name"
            raise InvalidJobError("is missing: name the container", field=where)
    _check_unique_names(spec, f"{path}.spec")
    _check_counts(template, path)
    _check_bytes(template.get("metadata", {}), ("labels", "finalizers"), f"{path}.metadata")
    _check_bytes(spec, ("nodeSelector",), f"{path}.spec")
    # A container that exits 0 is done: Always, which is also the default, would restart it.
    template_policy = "Never" if spec.get("restartPolicy") == "Never" else "OnFailure"
    return {**template, "spec": {**spec, "restartPolicy": restart_policy or template_policy}}


def _check_unique_names(spec: Mapping[str, Any], path: str) -> None:
    """Reject names and paths given twice, for which the API server refuses a pod."""
    containers = _items(spec, "containers", "initContainers")
    _check_unique(containers, path, "name", "container")
    _check_unique(_items(spec, "volumes"), path, "name", "volume")
    _check_unique(_items(spec, "resourceClaims"), path, "name", "resource claim")
    for list_, index, container in containers:
        where = f"{path}.{list_}[{index}]"
        _check_unique(_items(container, "ports"), where, "name", "port")
        _check_unique(_items(container, "volumeMounts"), where, "mountPath", "volume mount")
        _check_unique(_items(container, "volumeDevices"), where, "devicePath", "volume device")


def _check_counts(template: Mapping[str, Any], path: str) -> None:
    for part, name in _COUNTED:
        count = len(template.get(part, {}).get(name, ()))
        if count > MAX_ITEMS:
            message = f"has {count} items: use at most {MAX_ITEMS}"
            raise InvalidJobError(message, field=f"{path}.{part}.{name}")


def _check_bytes(owner: Mapping[str, Any], names: Sequence[str], path: str) -> None:
    """Reject parts of which too much would be kept in memory, for each of the pods."""
    size = sum(len(msgspec.json.encode(owner[name])) for name in names if owner.get(name))
    if size > MAX_BYTES:
        message = f"has {size:,} bytes of {' and '.join(names)}: use at most {MAX_BYTES:,}"
        raise InvalidJobError(message, field=path)


_Item = tuple[str, int, Mapping[str, Any]]


def _items(owner: Mapping[str, Any], *lists: str) -> list[_Item]:
    """Return the items of these lists, each after the name of its list and its index there."""
    return [(name, n, item) for name in lists for n, item in enumerate(owner.get(name, ()))]


def _check_unique(items: Sequence[_Item], path: str, field: str, kind: str) -> None:
    seen = set[str]()
    for list_, index, item in items:
        value = item.get(field)
        if value and value in seen:
            raise InvalidJobError(
                f"is {quoted(value)}, as another {kind}'s is: change one of them",
                field=f"{path}.{list_}[{index}].{field}",
            )
        seen.add(value or "")


def training_container(template: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the container whose exit is the replica's: one of these names, else the first."""
    listed = [str(container["name"]) for container in template["spec"]["containers"]]
    return next((name for name in names if name in listed), listed[0])

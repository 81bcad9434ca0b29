"""Changes to pod specs and containers that several frameworks make. Pure."""

from collections.abc import Sequence

from dlctl.api.json_types import ReadOnlyJSON


def append_items(given: ReadOnlyJSON, **lists: Sequence[ReadOnlyJSON]) -> ReadOnlyJSON:
    """Return an object with items appended to its lists."""
    longer = {name: [*(given.get(name) or []), *items] for name, items in lists.items()}
    return {**given, **longer}


def append_to_first(pod_spec: ReadOnlyJSON, **lists: Sequence[ReadOnlyJSON]) -> ReadOnlyJSON:
    """Return a pod spec with items appended to the lists of its first container."""
    container, *others = pod_spec["containers"]
    return {**pod_spec, "containers": [append_items(container, **lists), *others]}


def add_mounts(container: ReadOnlyJSON, *mounts: ReadOnlyJSON) -> ReadOnlyJSON:
    """Return a container with these mounts, except where the user has mounted something else."""
    used_paths = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    free = [mount for mount in mounts if mount["mountPath"] not in used_paths]
    return append_items(container, volumeMounts=free) if free else container

"""The ConfigMaps and Secrets that a pod refers to."""

from collections.abc import Mapping
from typing import Literal

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.api_types import NodePod

# As messages of kubelets name them.
SourceKind = Literal["configmap", "secret"]


class MissingReferenceError(DlctlError):
    """A ConfigMap, Secret, key or field that a container needs is missing (yet), or is no text."""


@attrs.frozen
class ConfigSources:
    """The existing ConfigMaps and Secrets that a pod refers to, by name."""

    config_maps: Mapping[str, Mapping[str, bytes]] = attrs.field(factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = attrs.field(factory=dict)

    def content(
        self, kind: SourceKind, name: str | None, *, optional: bool | None
    ) -> Mapping[str, bytes] | None:
        """Return the values of an object by key; None if it is optional and does not exist.

        :raises MissingReferenceError: if it is required and does not exist.
        """
        found = (self.secrets if kind == "secret" else self.config_maps).get(name or "")
        if found is None and not optional:
            raise MissingReferenceError(f'{kind} "{name or ""}" not found')
        return found


def references(pod: NodePod) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and of the Secrets that the pod refers to."""
    config_maps: set[str | None] = set()
    secrets: set[str | None] = set()
    for container in pod.spec.all_containers:
        for bulk in container.env_from or ():
            config_maps.add(bulk.config_map_ref.name if bulk.config_map_ref else None)
            secrets.add(bulk.secret_ref.name if bulk.secret_ref else None)
        for source in [variable.value_from for variable in container.env or ()]:
            if source is not None:
                config_maps.add(
                    source.config_map_key_ref.name if source.config_map_key_ref else None
                )
                secrets.add(source.secret_key_ref.name if source.secret_key_ref else None)
    for volume in pod.spec.volumes or ():
        projected = volume.projected.sources if volume.projected else None
        for files in [volume, *(projected or ())]:
            config_maps.add(files.config_map and files.config_map.name)
            secrets.add(files.secret and (files.secret.secret_name or files.secret.name))
    return {name for name in config_maps if name}, {name for name in secrets if name}

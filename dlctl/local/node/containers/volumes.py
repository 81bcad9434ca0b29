"""Volumes as directories of the machine, created before a pod's first container and kept current.

References are written as whole files, each replaced atomically when it changes. Only the owner may
read them, whatever the requested mode.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import attrs
import msgspec

from dlctl.errors import DlctlError
from dlctl.local.node.api_types import (
    DownwardAPIVolumeFile,
    FileVolumeSource,
    HostPathVolumeSource,
    KeyToPath,
    NodePod,
    ObjectFieldSelector,
    Volume,
    VolumeProjection,
)
from dlctl.local.node.containers.downward_api import PodPlacement, pod_field, resource_field
from dlctl.local.node.containers.references import (
    ConfigSources,
    MissingReferenceError,
    SourceKind,
)

_FILE_MODE = 0o644
_OWNER_ONLY = 0o700


class UnsupportedVolumeError(DlctlError):
    """A volume that a node of plain processes cannot provide."""


@attrs.frozen
class _File:
    path: str
    content: bytes
    mode: int


@attrs.define
class VolumeManager:
    """Creates and refreshes the volumes of one pod; blocking, so not for the event loop."""

    pod: NodePod
    place: PodPlacement
    sources: ConfigSources
    # Lives as long as the pod.
    directory: Path
    # Outlives the pod: one directory per claim of its namespace.
    claims: Path
    # Written files by volume.
    _written: dict[str, dict[str, _File]] = attrs.field(init=False, factory=dict)

    def create_all(self) -> Mapping[str, Path]:
        """Create the volumes; return their directories by name."""
        return {volume.name: self._create(volume) for volume in self.pod.spec.volumes or ()}

    def _create(self, volume: Volume) -> Path:
        if volume.host_path is not None:
            return _host_path(volume.host_path)
        if volume.persistent_volume_claim is not None:
            return self._claim(volume.persistent_volume_claim.claim_name)
        path = self.directory / volume.name
        path.mkdir(parents=True, exist_ok=True)
        if volume.empty_dir is None:
            self._fill(volume)
        return path

    def _claim(self, name: str) -> Path:
        path = self.claims / name
        if path.parent != self.claims or name == "..":
            raise UnsupportedVolumeError(f"claimName {name!r} is no name of a claim")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def refresh(self, sources: ConfigSources) -> None:
        """Write changed references; files of references that no longer exist are kept."""
        self.sources = sources
        for volume in self.pod.spec.volumes or ():
            if volume.name in self._written:
                with suppress(MissingReferenceError):
                    self._fill(volume)

    def _fill(self, volume: Volume) -> None:
        path = self.directory / volume.name
        before = self._written.get(volume.name, {})
        now = {file.path: file for file in self._files(volume)}
        for name, file in now.items():
            if before.get(name) != file:
                self._write(path, file)
        for name in before.keys() - now.keys():
            (path / name).unlink(missing_ok=True)
        self._written[volume.name] = now

    def _write(self, directory: Path, file: _File) -> None:
        path = directory / file.path
        if not path.resolve().is_relative_to(directory.resolve()):
            raise UnsupportedVolumeError(f"path {file.path!r} is outside the volume")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Moved into place: a reader sees the old content or the new.
        made = self.directory / f".{uuid.uuid4().hex}"
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.mode & _OWNER_ONLY)
        with open(fd, "wb") as out:
            out.write(file.content)
        made.replace(path)

    def _files(self, volume: Volume) -> Iterable[_File]:
        if volume.projected is not None:
            mode = volume.projected.default_mode or _FILE_MODE
            return [
                file
                for source in volume.projected.sources or ()
                for file in self._source_files(source, mode)
            ]
        known = VolumeProjection(
            config_map=volume.config_map, secret=volume.secret, downward_api=volume.downward_api
        )
        if known == VolumeProjection():
            raise UnsupportedVolumeError(f'volume "{volume.name}" has an unsupported type')
        return list(self._source_files(known, _FILE_MODE))

    def _source_files(self, source: VolumeProjection, mode: int) -> Iterator[_File]:
        if source.config_map is not None:
            name = source.config_map.name or ""
            yield from self._projected_files(source.config_map, "configmap", name, mode)
        if source.secret is not None:
            name = source.secret.secret_name or source.secret.name or ""
            yield from self._projected_files(source.secret, "secret", name, mode)
        if source.downward_api is not None:
            for item in msgspec.convert(
                source.downward_api.items or [], list[DownwardAPIVolumeFile]
            ):
                yield _File(item.path, self._pod_field(item).encode(), mode)

    def _projected_files(
        self, source: FileVolumeSource, kind: SourceKind, name: str, default_mode: int
    ) -> Iterator[_File]:
        content = self.sources.content(kind, name, optional=source.optional)
        if content is None:
            return
        mode = source.default_mode or default_mode
        if source.items is None:
            yield from (_File(key, value, mode) for key, value in content.items())
            return
        for item in msgspec.convert(source.items, list[KeyToPath]):
            if item.key in content:
                yield _File(item.path, content[item.key], item.mode or mode)
            elif not source.optional:
                raise MissingReferenceError(f'key "{item.key}" not found in {kind} "{name}"')

    def _pod_field(self, item: DownwardAPIVolumeFile) -> str:
        if item.resource_field_ref is not None:
            return resource_field(self.pod, item.resource_field_ref, self.place)
        reference = item.field_ref or ObjectFieldSelector()
        return pod_field(self.pod, reference.field_path, self.place)


def _host_path(source: HostPathVolumeSource) -> Path:
    path = Path(source.path)
    if source.type == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        raise UnsupportedVolumeError(
            f"hostPath {source.path} does not exist on this machine: create it, "
            "or set type: DirectoryOrCreate"
        )
    return path

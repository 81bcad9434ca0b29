"""Volumes as directories of the machine: made once per pod, before its first container.

The files hold what the references held at that time; later changes do not reach them. Only the
owner may read them, whatever mode was asked for.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs
import msgspec

from dlctl.errors import DlctlError
from dlctl.local.node.env import MissingReferenceError, Place, Sources, field
from dlctl.local.node.wire import (
    FieldToPath,
    FileSource,
    HostPath,
    KeyToPath,
    NodePod,
    ProjectedSource,
    Volume,
)

_FILE_MODE = 0o644
_OWNER_ONLY = 0o700


class UnsupportedVolumeError(DlctlError):
    """A volume that a node of plain processes has no way to provide."""


@attrs.frozen
class _File:
    path: str
    content: bytes
    mode: int


@attrs.frozen
class VolumeMaker:
    """Makes the volumes of one pod; blocking, so not for the event loop."""

    pod: NodePod
    place: Place
    sources: Sources
    # Lives as long as the pod.
    directory: Path
    # Lives as long as the cluster: a directory per claim stands for a persistent volume.
    claims: Path

    def make_all(self) -> Mapping[str, Path]:
        """Return the directory of each volume by its name."""
        return {volume.name: self._make(volume) for volume in self.pod.spec.volumes or ()}

    def _make(self, volume: Volume) -> Path:
        if volume.host_path is not None:
            return _host_path(volume.host_path)
        if volume.persistent_volume_claim is not None:
            path = self.claims / volume.persistent_volume_claim.claim_name
            path.mkdir(parents=True, exist_ok=True)
            return path
        path = self.directory / volume.name
        path.mkdir(parents=True, exist_ok=True)
        if volume.empty_dir is None:
            for file in self._files(volume):
                _write(path, file)
        return path

    def _files(self, volume: Volume) -> Iterable[_File]:
        if volume.projected is not None:
            return [
                file
                for source in volume.projected.sources or ()
                for file in self._source_files(source)
            ]
        known = ProjectedSource(
            config_map=volume.config_map, secret=volume.secret, downward_api=volume.downward_api
        )
        if known == ProjectedSource():
            raise UnsupportedVolumeError(f'volume "{volume.name}" is of a kind not supported here')
        return list(self._source_files(known))

    def _source_files(self, source: ProjectedSource) -> Iterator[_File]:
        if source.config_map is not None:
            name = source.config_map.name or ""
            yield from _held_files(source.config_map, self.sources.config_maps, "configmap", name)
        if source.secret is not None:
            name = source.secret.secret_name or source.secret.name or ""
            yield from _held_files(source.secret, self.sources.secrets, "secret", name)
        if source.downward_api is not None:
            for item in msgspec.convert(source.downward_api.items or [], list[FieldToPath]):
                if item.field_ref is not None:
                    text = field(self.pod, item.field_ref.field_path, self.place)
                    yield _File(item.path, text.encode(), _FILE_MODE)


def _held_files(
    source: FileSource, held: Mapping[str, Mapping[str, bytes]], kind: str, name: str
) -> Iterator[_File]:
    if name not in held:
        if source.optional:
            return
        raise MissingReferenceError(f'{kind} "{name}" not found')
    content = held[name]
    mode = source.default_mode or _FILE_MODE
    if source.items is None:
        yield from (_File(key, value, mode) for key, value in content.items())
        return
    for item in msgspec.convert(source.items, list[KeyToPath]):
        if item.key in content:
            yield _File(item.path, content[item.key], item.mode or mode)
        elif not source.optional:
            raise MissingReferenceError(f'key "{item.key}" not found in {kind} "{name}"')


def _write(directory: Path, file: _File) -> None:
    path = directory / file.path
    if not path.resolve().is_relative_to(directory.resolve()):
        raise UnsupportedVolumeError(f"path {file.path!r} leads out of the volume")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Removed first, because one without the right to write could not be opened again.
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file.mode & _OWNER_ONLY)
    with open(fd, "wb") as out:
        out.write(file.content)


def _host_path(source: HostPath) -> Path:
    path = Path(source.path)
    if source.type == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        raise UnsupportedVolumeError(f"hostPath {source.path} does not exist on this machine")
    return path

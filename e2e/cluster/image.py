"""Wraps a root file system as an OCI image archive, without any container tool.

One layer, as it is; what a Dockerfile describes is built by a real builder, not here.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

_MEDIA: Final = "application/vnd.oci.image"
_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@attrs.define
class _Blobs:
    """The contents of an archive, by digest."""

    data: dict[str, bytes] = attrs.field(factory=dict)

    def add(self, kind: str, data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        self.data[digest] = data
        return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, kind: str, value: object) -> dict[str, object]:
        return self.add(f"{kind}.v1+json", json.dumps(value).encode())


def write_archive(out: Path, name: str, root: Path, entrypoint: Sequence[str] = ()) -> None:
    """Write an archive with one image: the name, and the tar file of its root."""
    blobs = _Blobs()
    layer = blobs.add("layer.v1.tar", root.read_bytes())
    settings = {"Env": [_PATH], "Entrypoint": list(entrypoint) or None}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": blobs.add_json("config", config),
        "layers": [layer],
    }
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    entry = blobs.add_json("manifest", manifest) | {"annotations": names}
    index = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [entry]}
    files = {
        "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
        "index.json": json.dumps(index).encode(),
    }
    files |= {f"blobs/sha256/{digest}": data for digest, data in blobs.data.items()}
    with tarfile.open(out, "w") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))

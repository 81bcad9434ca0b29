"""The objects of rendered manifests."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey

FOLDER: Final = Path(__file__).parents[2] / "manifests"
Render = Callable[..., "Objects"]


def with_component(folder: Path, overlay: str, *component: str) -> Path:
    """Return the folder with a kustomization of an overlay and a component."""

    def relative(*parts: str) -> str:
        return os.path.relpath(FOLDER.joinpath(*parts), folder)

    kustomization = {
        "resources": [relative("overlays", overlay)],
        "components": [relative("components", *component)],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return folder


@attrs.frozen
class Objects:
    """Rendered objects, in the order in which they would be applied, and their text."""

    text: str

    def all(self) -> list[JSON]:
        return list(_parsed(self.text))

    def of_kind(self, kind: str) -> list[JSON]:
        return [obj for obj in self.all() if obj["kind"] == kind]

    def one(self, kind: str) -> JSON:
        (found,) = self.of_kind(kind)
        return found

    def pod_spec(self) -> JSON:
        return dict(self.one("Deployment")["spec"]["template"]["spec"])

    def container(self) -> JSON:
        (container,) = self.pod_spec()["containers"]
        return dict(container)

    def by_identity(self) -> dict[tuple[str, ObjectKey], JSON]:
        found = {}
        for obj in self.all():
            meta = obj["metadata"]
            key = ObjectKey(meta.get("namespace", ""), meta["name"])
            found[obj["kind"], key] = obj
        return found


# The pure Python loader takes a second for the CRDs.
@cache
def _parsed(text: str) -> tuple[JSON, ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(obj for obj in yaml.load_all(text, Loader=loader) if obj)

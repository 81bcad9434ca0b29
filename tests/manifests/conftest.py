"""The manifests as rendered by kustomize and Helm; skipped without these programs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import attrs
import pytest
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The CRDs are megabytes, for which kustomize takes seconds, and more on a busy machine.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="session")
def kustomize() -> Render:
    """Render an overlay."""
    kubectl = _program("kubectl")
    return lambda overlay: Objects(
        _output(kubectl, "kustomize", str(FOLDER / "overlays" / overlay))
    )


@pytest.fixture(scope="session")
def helm() -> Render:
    """Render the chart as a release in ``dlctl-system``, with some values set, some as JSON."""
    program = _program("helm")

    def render(*values: str, release: str = "dlctl", json: Sequence[str] = ()) -> Objects:
        sets = [f"--set={value}" for value in values]
        sets += [f"--set-json={value}" for value in json]
        chart = str(FOLDER / "chart")
        where = ("--namespace", "dlctl-system", "--kube-version", "1.36.0")
        return Objects(_output(program, "template", release, chart, *where, *sets))

    return render


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not there")
    return found


@cache
def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# The pure Python loader takes a second for the CRDs.
@cache
def _parsed(text: str) -> tuple[JSON, ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(obj for obj in yaml.load_all(text, Loader=loader) if obj)

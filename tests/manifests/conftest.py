"""The manifests as rendered by kustomize and Helm; skipped without these programs."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.manifests.rendered import FOLDER, Objects, Render


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

"""Packages installed by their metadata on the path, without pip."""

import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dlctl.frameworks.registry import ENTRY_POINT_GROUP

Install = Callable[[str, str], None]


def write_distribution(site: Path, name: str, frameworks: Mapping[str, str]) -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{entry} = {value}" for entry, value in frameworks.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINT_GROUP}]", *lines]))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what installs a distribution of a given name that offers one framework."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, value: str) -> None:
        write_distribution(tmp_path, name, {name: value})

    return install


@pytest.fixture
def sample_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the sample package and return its folder."""
    folder = Path(__file__).parents[1] / "sample_framework"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    write_distribution(tmp_path, project["name"], project["entry-points"][ENTRY_POINT_GROUP])
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ring_dlctl", raising=False)
    return folder

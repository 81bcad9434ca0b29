"""The version and the address of the project are those of pyproject.toml wherever they stand."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

_ROOT: Final = Path(__file__).parents[1]
_PROJECT: Final[dict[str, Any]] = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
_VERSION: Final[str] = _PROJECT["version"]
_SOURCE: Final[str] = _PROJECT["urls"]["Source"]


def _chart() -> dict[str, str]:
    chart: dict[str, str] = yaml.safe_load((_ROOT / "manifests/chart/Chart.yaml").read_text())
    return chart


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        pytest.param("manifests/base/kustomization.yaml", r"newTag: (\S+)", id="kustomize"),
        pytest.param("manifests/install.yaml", r"image: dlctl:(\S+)", id="install.yaml"),
        pytest.param("Dockerfile", r'image\.version="(\S+)"', id="image"),
        pytest.param("README.md", r"IMAGE=\S+/dlctl:(\S+)", id="readme"),
        pytest.param("CHANGELOG.md", r"## \[?(\d[^] ]*)", id="changelog"),
    ],
)
def test_version_is_that_of_the_package_in(path: str, pattern: str) -> None:
    found = re.search(pattern, (_ROOT / path).read_text())
    assert found is not None
    assert found[1] == _VERSION


def test_chart_has_the_version_of_the_package_and_installs_it() -> None:
    assert (_chart()["version"], _chart()["appVersion"]) == (_VERSION, _VERSION)


def test_image_and_chart_name_the_repository_of_the_package() -> None:
    assert f'image.source="{_SOURCE}"' in (_ROOT / "Dockerfile").read_text()
    assert _chart()["home"] == _SOURCE


def test_issue_form_links_to_private_security_reports() -> None:
    forms = (_ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text()
    assert f"url: {_SOURCE}/security/advisories/new" in forms

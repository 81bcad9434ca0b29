"""Manifests in files."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Written


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write manifests to a file and return its name."""

    def write(*manifests: Any) -> str:
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        return str(path)

    return write

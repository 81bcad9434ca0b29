"""The notebook of the documentation runs from its first cell to its last."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT

_NOTEBOOK: Final = ROOT / "docs/get-started/notebook.ipynb"
# In a process of its own: a kernel's client is not free of warnings.
_EXECUTE: Final = """
import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_notebook_runs_a_job(tmp_path: Path) -> None:
    executed = tmp_path / "executed.ipynb"
    subprocess.run(
        [sys.executable, "-c", _EXECUTE, str(_NOTEBOOK), str(executed)],
        env={**os.environ, "HOME": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"},
        timeout=110,
        check=True,
    )
    cells = json.loads(executed.read_text())["cells"]
    printed = "".join(
        "".join(output["text"])
        for cell in cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "stream"
    )
    assert printed == f"share of rank 0 is {sum(range(0, 1000, 3))}\ntotal {sum(range(1000))}\n\n"


def test_notebook_is_stored_without_output() -> None:
    cells = json.loads(_NOTEBOOK.read_text())["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []

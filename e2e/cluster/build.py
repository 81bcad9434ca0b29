"""Builds the programs of a cluster from Go modules: those that are not in the cache yet.

Needs Go; for a node also gcc, pkg-config and the headers of libseccomp.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.programs import Program


def build(programs: Sequence[Program], folder: Path) -> list[str]:
    """Build missing programs; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [program for program in programs if not (folder / program.name).exists()]
    if missing and shutil.which("go") is None:
        names = ", ".join(program.name for program in missing)
        raise ClusterError(f"go is not on PATH, and these are still to be built: {names}")
    for program in missing:
        _build(program, folder)
    return [program.name for program in missing]


def _build(program: Program, folder: Path) -> None:
    # Moved into place when complete, even if two builds run at once.
    scratch = folder / f".{program.name}.{os.getpid()}"
    scratch.mkdir()
    try:
        command, environment = ["go", "install"], dict(os.environ)
        if program.module is None:
            environment["GOBIN"] = str(scratch)
        else:
            command = ["go", "build", "-o", str(scratch / program.name)]
        command += ["-trimpath", *program.flags, program.package]
        run = subprocess.run(command, cwd=program.module, env=environment, check=False)
        if run.returncode:
            raise ClusterError(f"{program.name} was not built: go said why above")
        (scratch / program.name).replace(folder / program.name)
    finally:
        shutil.rmtree(scratch)

"""What stands for the images of faults: programs of this machine, and one made for MPICH."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_WAIT_FOR_NAMES: Final = Path(__file__).parents[2] / "examples" / "mpi" / "wait-for-names"


def make_images(folder: Path) -> Mapping[str, Path]:
    """Return images by name, in a new folder; without MPICH's compiler, MPICH's has no program."""
    bin_ = folder / "bin"
    bin_.mkdir(parents=True)
    shutil.copy(_WAIT_FOR_NAMES, bin_ / "entrypoint")
    if compiler := shutil.which("mpicc.mpich"):
        source = Path(__file__).with_name("rank.c")
        subprocess.run([compiler, "-o", bin_ / "rank", source], check=True)
    return {"mpi": Path("/usr"), "mpich": folder}

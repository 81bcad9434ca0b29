"""Where dlctl differs from mpi-operator on purpose. The page on migration says so to users."""

from typing import Final

from e2e.mpi_operator.difference import Meant

MEANT: Final = (
    Meant("all children have dlctl's label", r"metadata/labels/dlctl\.dev/managed-by"),
    Meant("dlctl keeps what it needs to know in the status", r"^objects/MPIJob JOB/status/dlctl"),
)

"""MPI implementations: the environment of their launchers, and their host files.

The names, values and order are mpi-operator's: users' images and scripts rely on them.
"""

import enum
from collections.abc import Iterable
from typing import Final

from dlctl.frameworks.hostfiles import colon_hostfile, slots_hostfile
from dlctl.frameworks.kubeflow.mpi_config import CONFIG_PATH, HOSTFILE

_HOSTFILE_PATH: Final = f"{CONFIG_PATH}/{HOSTFILE}"
# Workers may still be starting when the launcher dials them.
_SSH_ARGS: Final = "-o ConnectionAttempts=10"


class MPIImplementation(enum.StrEnum):
    """The implementation in a job's images."""

    OPEN_MPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"

    def launcher_environment(self, slots: int) -> list[tuple[str, str]]:
        """Return the variables by which mpirun finds the hosts and dials them."""
        match self:
            case MPIImplementation.OPEN_MPI:
                return [
                    ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
                    ("OMPI_MCA_orte_default_hostfile", _HOSTFILE_PATH),
                    ("OMPI_MCA_plm_rsh_args", _SSH_ARGS),
                    ("OMPI_MCA_orte_set_default_slots", str(slots)),
                ]
            case MPIImplementation.INTEL:
                return [
                    ("I_MPI_HYDRA_HOST_FILE", _HOSTFILE_PATH),
                    ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _SSH_ARGS),
                    ("I_MPI_PERHOST", str(slots)),
                ]
            case MPIImplementation.MPICH:
                return [
                    ("HYDRA_HOST_FILE", _HOSTFILE_PATH),
                    ("HYDRA_LAUNCH_EXTRA_ARGS", _SSH_ARGS),
                ]

    def hostfile(self, hosts: Iterable[str], slots: int) -> str:
        """Return the host file: a line per host, whether or not it runs."""
        lists_slots = self is MPIImplementation.OPEN_MPI
        return (slots_hostfile if lists_slots else colon_hostfile)(hosts, slots)

"""Host lists in the two forms of MPI implementations and Horovod."""

from collections.abc import Iterable


def colon_hostfile(hosts: Iterable[str], slots: int) -> str:
    """Return the form of Intel MPI, MPICH and Horovod."""
    return "".join(f"{host}:{slots}\n" for host in hosts)


def slots_hostfile(hosts: Iterable[str], slots: int) -> str:
    """Return the form of Open MPI and DeepSpeed."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)

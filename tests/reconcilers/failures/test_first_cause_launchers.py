"""Launchers know which process failed first: its replica is blamed, not the launcher's."""

from collections.abc import Sequence

import attrs
import pytest

from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from tests.reconcilers.failures.gangs import MPI_JOB, ended, failed_replica, verdict_of
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised


@attrs.frozen
class _Row:
    """Members and the verdict about it."""

    replicas: Sequence[FailedReplica]
    cause: Cause
    replica: str
    rank: int | None = None
    exit_code: int | None = None
    text: str = ""


def launcher(output: str, code: int = 1) -> FailedReplica:
    return failed_replica("launcher-0", ended(code, output), job=MPI_JOB)


def worker(index: int, code: int, output: str = "", *, reason: str = "Error") -> FailedReplica:
    return failed_replica(f"worker-{index}", ended(code, output, reason=reason), job=MPI_JOB)


_HOST = "linear-worker-1"
_LAUNCHED = {
    "Open MPI, killed": _Row(
        [launcher(outputs.open_mpi_signal(3, _HOST), 137)], Cause.UNKNOWN, "worker-1", 3, 137,
        "rank 3 on linear-worker-1",
    ),
    "Open MPI, crashed": _Row(
        [launcher(outputs.open_mpi_signal(3, _HOST, "11 (Segmentation fault)"), 139)],
        Cause.USER_CODE, "worker-1", 3, 139, "SIGSEGV",
    ),
    "Open MPI, full host name": _Row(
        [launcher(outputs.open_mpi_signal(0, f"{_HOST}.linear.ml.svc"), 137)],
        Cause.UNKNOWN, "worker-1", 0, 137, "rank 0 on",
    ),
    "Open MPI, under another name": _Row(
        [launcher(outputs.open_mpi_signal(3, _HOST, by="orterun"), 137)], Cause.UNKNOWN,
        "worker-1", 3, 137,
    ),
    "Open MPI 5, killed": _Row(
        [launcher(outputs.prrte_signal(17, _HOST), 137)], Cause.UNKNOWN, "worker-1", 17, 137,
    ),
    "Open MPI, exited": _Row(
        [launcher(outputs.mpi_exit("[[8799,1],2]", 42), 42)], Cause.USER_CODE, "launcher-0", 2, 42,
    ),
    "Open MPI 5, exited": _Row(
        [launcher(outputs.mpi_exit("[prterun-linear-launcher-12@1,2]", 42, "prterun"), 42)],
        Cause.USER_CODE, "launcher-0", 2, 42,
    ),
    "Open MPI, exception": _Row(
        [launcher(raised("ValueError: nan", tag="[1,2]<stderr>:")
                  + outputs.mpi_exit("[[8799,1],2]", 1))],
        Cause.USER_CODE, "launcher-0", 2, 1, "ValueError: nan",
    ),
    "Open MPI, abort": _Row(
        [launcher("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
                  "with errorcode 5.\n", 5)],
        Cause.USER_CODE, "launcher-0", 1, 5,
    ),
    "Open MPI, missing program": _Row(
        [launcher("mpirun was unable to find the specified executable file, and therefore\n"
                  "did not launch the job.\n\nNode:       linear-worker-0\nExecutable: tarin\n",
                  134)],
        Cause.BAD_COMMAND_OR_IMAGE, "launcher-0", None, 134, "tarin",
    ),
    "Open MPI, too few slots": _Row(
        [launcher("There are not enough slots available in the system to satisfy the 4\n"
                  "slots that were requested by the application:\n\n  train\n")],
        Cause.CONFIGURATION, "launcher-0", None, 1, "not enough slots",
    ),
    "Open MPI, as root": _Row(
        [launcher("mpirun has detected an attempt to run as root.\n\nRunning as root is *strongly*"
                  " discouraged\n")],
        Cause.CONFIGURATION, "launcher-0", None, 1, "an attempt to run as root",
    ),
    "Open MPI, lost host": _Row(
        [launcher(outputs.LOST_DAEMON)], Cause.UNKNOWN, "worker-1", None, None, "lost",
    ),
    "Open MPI, host that closed its connection": _Row(
        [launcher(outputs.UNRELIABLE_DAEMON)], Cause.UNKNOWN, "worker-1", None, None, "lost",
    ),
    "Hydra, killed": _Row(
        [launcher(outputs.hydra(_HOST, 9, "Killed (signal 9)"), 9)], Cause.UNKNOWN, "worker-1",
        None, 137,
    ),
    "Hydra, crashed": _Row(
        [launcher(outputs.hydra(_HOST, 9, "Segmentation fault (signal 11)"), 11)],
        Cause.USER_CODE, "worker-1", None, 139,
    ),
    "Hydra, signal by its number": _Row(
        [launcher(outputs.hydra(f"{_HOST}.linear.ml.svc", 11), 255)], Cause.USER_CODE, "worker-1",
        None, 139,
    ),
    "Hydra, exited": _Row(
        [launcher(outputs.hydra(_HOST, 42, rank=2), 42)], Cause.USER_CODE, "worker-1", 2, 42,
    ),
    "Hydra, unknown exit code": _Row(
        [launcher(outputs.hydra(_HOST, 1), 255)], Cause.UNKNOWN, "worker-1", None, None,
        "a process on linear-worker-1 failed: ended without MPI_Finalize",
    ),
    "Hydra, exception of a process with unknown exit code": _Row(
        [launcher(raised("ValueError: nan") + outputs.hydra(_HOST, 1), 255)],
        Cause.USER_CODE, "worker-1", None, None, "ValueError: nan",
    ),
    "Hydra, exception before it kills the others": _Row(
        [launcher(raised("ValueError: nan") + outputs.hydra(_HOST, 9, "Killed (signal 9)"), 9)],
        Cause.USER_CODE, "launcher-0", None, 9, "ValueError: nan",
    ),
    "MPICH, abort": _Row(
        [launcher("Abort(3) on node 1 (rank 1 in comm 0): application called"
                  " MPI_Abort(MPI_COMM_WORLD, 3) - process 1\n", 3)],
        Cause.USER_CODE, "launcher-0", 1, 3,
    ),
    "MPICH, abort because of a rank that crashed": _Row(
        [launcher("Abort(339332623) on node 0 (rank 0 in comm 0): Fatal error in internal_Init:"
                  " Other MPI error, error stack:\ninternal_Init(59): MPI_Init failed\n"
                  + outputs.hydra(_HOST, 11), 15)],
        Cause.USER_CODE, "worker-1", None, 139,
    ),
    "MPICH, abort by the library": _Row(
        [launcher("Abort(134870278) on node 2 (rank 2 in comm 0): Fatal error in internal_Send:"
                  " Invalid rank, error stack:\n", 6)],
        Cause.USER_CODE, "launcher-0", 2, 6, "rank 2 failed: Fatal error in internal_Send: Invalid",
    ),
    "MPICH, rank that cannot reach another one": _Row(
        [launcher("Abort(70897167) on node 0 (rank 0 in comm 0): Fatal error in internal_Init:"
                  " Other MPI error, error stack:\ninternal_Init(59): MPI_Init failed\n", 17)],
        Cause.UNKNOWN, "launcher-0", 0, 17, "Fatal error in internal_Init: Other MPI error",
    ),
    "MPICH, rank that cannot reach a worker out of memory": _Row(
        [launcher("Abort(70897167) on node 0 (rank 0 in comm 0): Fatal error in internal_Init:"
                  " Other MPI error, error stack:\ninternal_Init(59): MPI_Init failed\n", 15),
         worker(1, 137, reason="OOMKilled")],
        Cause.OUT_OF_MEMORY, "worker-1", None, 137,
    ),
    "Intel MPI, killed": _Row(
        [launcher(outputs.intel_mpi(3, _HOST), 255)], Cause.UNKNOWN, "worker-1", 3, 137,
    ),
    "horovodrun, by rank": _Row(
        [launcher(outputs.horovodrun("2", 17))], Cause.USER_CODE, "launcher-0", 2, 17,
    ),
    "horovodrun, code 0 of a failure": _Row(
        [launcher(outputs.horovodrun("2", 0))], Cause.USER_CODE, "launcher-0", 2, 128,
    ),
    "horovodrun, by host": _Row(
        [launcher(outputs.horovodrun(f"{_HOST}[0]", 17))], Cause.USER_CODE, "worker-1", None, 17,
    ),
    "horovodrun, exception": _Row(
        [launcher(raised("ValueError: nan", tag="[2]<stderr>:") + outputs.horovodrun("2"))],
        Cause.USER_CODE, "launcher-0", 2, 1, "ValueError: nan",
    ),
    "horovodrun, exception beside collateral": _Row(
        [launcher(raised("ValueError: nan", tag="[2]<stderr>:") + outputs.HOROVOD_PEER
                  + outputs.horovodrun("2"))],
        Cause.USER_CODE, "launcher-0", 2, 1, "ValueError: nan",
    ),
    "worker out of memory": _Row(
        [launcher(outputs.open_mpi_signal(3, _HOST), 137), worker(1, 137, reason="OOMKilled")],
        Cause.OUT_OF_MEMORY, "worker-1", None, 137,
    ),
    "worker out of memory behind horovodrun": _Row(
        [launcher(outputs.horovodrun("2")), worker(2, 137, reason="OOMKilled")],
        Cause.OUT_OF_MEMORY, "worker-2", None, 137,
    ),
    "worker gone": _Row(
        [launcher(outputs.LOST_DAEMON), worker(1, 137, reason="ContainerStatusUnknown")],
        Cause.NODE, "worker-1", None, None,
    ),
    "worker that the launcher names": _Row(
        [worker(0, 143), launcher(outputs.open_mpi_signal(3, _HOST), 137), worker(1, 143)],
        Cause.UNKNOWN, "worker-1", 3, 137,
    ),
    "unknown host": _Row(
        [launcher(outputs.open_mpi_signal(3, "elsewhere"), 137)], Cause.UNKNOWN, "launcher-0", 3,
        137, "rank 3 on elsewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _LAUNCHED)
def test_launcher_names_the_process_to_blame(name: str) -> None:
    row = _LAUNCHED[name]
    found = verdict_of(*row.replicas, job=MPI_JOB)
    assert (found.cause, found.replica) == (row.cause, row.replica)
    assert (found.rank, found.exit_code) == (row.rank, row.exit_code)
    assert row.text in found.message
    blamed_launcher = row.replica == "launcher-0"
    assert ("launcher-0" in found.collateral) is not blamed_launcher


def test_worker_that_a_launcher_names_has_its_pod_in_the_verdict() -> None:
    found = verdict_of(launcher(outputs.open_mpi_signal(3, _HOST), 137), job=MPI_JOB)
    assert (found.pod, found.node) == (_HOST, "")
    assert (found.collateral, found.collateral_count) == (("launcher-0",), 1)


def test_blamed_worker_can_be_named_by_its_node() -> None:
    on_node = failed_replica("worker-2", ended(143), job=MPI_JOB, node="node-b")
    found = verdict_of(
        launcher(outputs.open_mpi_signal(3, on_node.node), 137), on_node, job=MPI_JOB
    )
    assert (found.replica, found.node) == ("worker-2", on_node.node)

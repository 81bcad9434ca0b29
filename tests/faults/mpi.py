"""Ranks that die under mpirun and mpiexec, and Horovod's workers under horovodrun."""

from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.status.verdict import Cause
from tests.faults.fault import Blame, Fault, kubeflow_job, replicas, shell

USER: Final = Cause.USER_CODE
_MPIRUN: Final = ("mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "2")
_NEEDS: Final = ("mpirun", "kubectl")
_NEEDS_SSH: Final = ("mpirun", "/usr/sbin/sshd")
_MPICH: Final = ("mpicc.mpich", "mpiexec.hydra", "/usr/sbin/sshd")
# Of the second rank; the first waits. It acts once the launcher is done with starting the job: Open
# MPI 4.1 leaves out its report, which names rank and host, of one in four that die before that.
_RANK: Final = '[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && {{ sleep 3; {act}; }}; exec sleep 60'
_RAISE: Final = "exec /usr/bin/python3 -c 'raise ValueError(3)'"
_HOROVODRUN: Final = """
echo '[1]<stderr>:Traceback (most recent call last):' >&2
echo '[1]<stderr>:  File "train.py", line 3, in <module>' >&2
echo '[1]<stderr>:ValueError: the loss is not finite' >&2
echo 'Process 1 exit with status code 1.' >&2
echo 'Terminating remaining workers after failure of Process 1.' >&2
echo 'Process 0 exit with status code 143.' >&2
echo '{error}' >&2
exit 1
"""
_RUN_ERROR: Final = (
    "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus"
    " causing the job to be terminated. The first process to do so was:\nProcess name: 1\n"
    "Exit code: 1"
)


def _open_mpi(act: str) -> list[str]:
    # The API server makes one of two dollars.
    return [*_MPIRUN, "sh", "-c", _RANK.format(act=act).replace("$", "$$")]


def _v1(program: list[str]) -> JSON:
    specs = {
        "Launcher": replicas(1, program, container={"image": "mpi"}),
        "Worker": replicas(2, container={"image": "mpi"}),
    }
    return kubeflow_job("MPIJob", specs, slotsPerWorker=1)


def _v2beta1(launcher: JSON, **spec: Any) -> JSON:
    worker = replicas(2, container={"image": launcher["image"]})
    return kubeflow_job(
        "MPIJob",
        {"Launcher": replicas(1, container=launcher), "Worker": worker},
        "v2beta1",
        slotsPerWorker=1,
        launcherCreationPolicy="WaitForWorkersReady",
        runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"},
        **spec,
    )


def _ssh(act: str) -> JSON:
    return _v2beta1({"image": "mpi", "command": _open_mpi(act)})


def _mpich(*args: str) -> JSON:
    launcher = {"image": "mpich", "args": ["mpiexec.hydra", "-n", "2", "rank", *args]}
    return _v2beta1(launcher, mpiImplementation="MPICH")


def _horovod() -> JSON:
    launcher = replicas(1, shell(_HOROVODRUN.format(error=_RUN_ERROR)))
    # Without a command, workers run sshd.
    worker = replicas(2, container={"image": "mpi"})
    for each in (launcher, worker):
        del each["restartPolicy"]
        each["template"]["spec"]["containers"][0]["name"] = "main"
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {},
        "spec": {"etReplicaSpecs": {"launcher": launcher, "worker": worker}},
    }


# On a busy machine, launchers may end without their report on an exit code, which has the rank.
FAULTS: Final = [
    Fault(
        "mpirun-signal",
        _v1(_open_mpi("kill -SEGV $$")),
        Blame(USER, "worker-1", 139, rank=1),
        "SIGSEGV",
        _NEEDS,
    ),
    Fault(
        "mpirun-killed-rank",
        _v1(_open_mpi("kill -KILL $$")),
        Blame(Cause.UNKNOWN, "worker-1", 137, rank=1),
        "SIGKILL",
        _NEEDS,
    ),
    Fault(
        "mpirun-exit-code",
        _v1(_open_mpi("exit 17")),
        Blame(USER, "launcher-0", 17),
        "17",
        _NEEDS,
    ),
    Fault(
        "mpirun-exception",
        _v1(_open_mpi(_RAISE)),
        Blame(USER, "launcher-0", 1),
        "ValueError: 3",
        _NEEDS,
    ),
    Fault(
        "mpirun-command-not-found",
        _v1([*_MPIRUN, "tarin"]),
        Blame(Cause.BAD_COMMAND_OR_IMAGE, "launcher-0"),
        "tarin",
        _NEEDS,
    ),
    Fault(
        "mpirun-by-ssh-signal",
        _ssh("kill -SEGV $$"),
        Blame(USER, "worker-1", 139, rank=1),
        "SIGSEGV",
        _NEEDS_SSH,
    ),
    Fault(
        "mpirun-by-ssh-exit-code",
        _ssh("exit 17"),
        Blame(USER, "launcher-0", 17),
        "17",
        _NEEDS_SSH,
    ),
    Fault(
        "mpich-signal",
        _mpich("raise", "11"),
        Blame(USER, "worker-1", 139),
        "SIGSEGV",
        _MPICH,
    ),
    Fault("mpich-exit-code", _mpich("exit", "17"), Blame(USER, "launcher-0", 17), "17", _MPICH),
    Fault("mpich-abort", _mpich("abort", "5"), Blame(USER, "launcher-0", 5), "5", _MPICH),
    Fault(
        "horovodrun-exception",
        _horovod(),
        Blame(USER, "launcher-0", 1, rank=1),
        "ValueError: the loss is not finite",
        ("/usr/sbin/sshd",),
    ),
]

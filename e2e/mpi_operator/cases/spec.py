"""The fields of an MPIJob's spec, beside its templates and its run policy."""

from typing import Final

from dlctl.frameworks.kubeflow.mpi_ssh_pods import DEFAULT_SSH_PATH
from e2e.mpi_operator.case import Case, Step, mpijob, replicas
from e2e.mpi_operator.steps import (
    launcher_runs,
    launcher_succeeds,
    resumes,
    suspends,
    workers_run,
)

RUN: Final[tuple[Step, ...]] = (workers_run(), launcher_runs(), launcher_succeeds())
_STARTS: Final[tuple[Step, ...]] = (workers_run(), launcher_runs())
_SUSPENDED: Final = {"suspend": True}

CASES: Final = (
    Case(mpijob("defaults"), RUN),
    Case(mpijob("everything-said", slotsPerWorker=1, mpiImplementation="OpenMPI"), RUN),
    *(
        Case(
            mpijob(f"{name.lower()}-{slots}-slots", 3, mpiImplementation=name, slotsPerWorker=slots)
        )
        for name in ("OpenMPI", "Intel", "MPICH")
        for slots in (0, 1, 8)
    ),
    *(
        Case(
            mpijob(f"{name.lower()}-as-worker", mpiImplementation=name, runLauncherAsWorker=True),
            RUN,
        )
        for name in ("OpenMPI", "Intel", "MPICH")
    ),
    Case(mpijob("as-worker-alone", None, runLauncherAsWorker=True, slotsPerWorker=2), RUN),
    Case(mpijob("launcher-alone", None), RUN),
    Case(mpijob("as-worker-false", runLauncherAsWorker=False), _STARTS),
    Case(mpijob("one-worker", 1), RUN),
    Case(mpijob("twelve-workers", 12), RUN),
    Case(mpijob("mount-path", sshAuthMountPath="/home/mpiuser/.ssh"), _STARTS),
    Case(mpijob("mount-path-slash", sshAuthMountPath=f"{DEFAULT_SSH_PATH}/"), ()),
    Case(mpijob("mount-path-empty", sshAuthMountPath=""), ()),
    Case(mpijob("at-startup", launcherCreationPolicy="AtStartup"), _STARTS),
    Case(mpijob("wait-for-workers", launcherCreationPolicy="WaitForWorkersReady"), RUN),
    Case(mpijob("wait-for-none", None, launcherCreationPolicy="WaitForWorkersReady"), RUN),
    Case(mpijob("unknown-policy", launcherCreationPolicy="Whenever"), RUN),
    Case(
        mpijob(
            "wait-suspended", launcherCreationPolicy="WaitForWorkersReady", run_policy=_SUSPENDED
        ),
        (resumes(), *RUN),
    ),
    Case(
        mpijob("wait-suspended-later", launcherCreationPolicy="WaitForWorkersReady"),
        (*_STARTS, suspends(), resumes(), *RUN),
    ),
    Case(mpijob("n" * 54), RUN),
    Case(mpijob("l" * 50, 3, runLauncherAsWorker=True), RUN),
    Case(
        mpijob(
            "labelled",
            metadata={"labels": {"team": "a"}, "annotations": {"note": "b"}},
        ),
        RUN,
    ),
    Case(mpijob("queued", metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}}), _STARTS),
    Case(mpijob("replicas-unset", replicas(1), replicas(None)), _STARTS),
)
WITH_DOMAIN: Final = (
    Case(mpijob("domain"), _STARTS),
    Case(mpijob("domain-as-worker", mpiImplementation="Intel", runLauncherAsWorker=True), _STARTS),
)

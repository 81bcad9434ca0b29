"""PodGroups, with volcano and with scheduler-plugins."""

from typing import Any, Final

from e2e.mpi_operator.case import Case, Step, launcher, mpijob, replicas
from e2e.mpi_operator.cases.spec import RUN
from e2e.mpi_operator.steps import (
    launcher_runs,
    launcher_succeeds,
    resumes,
    scales,
    suspends,
    worker_ends,
    workers_run,
)

_STARTS: Final = (workers_run(), launcher_runs())
_QUEUE: Final = {"scheduling.volcano.sh/queue-name": "noted"}


def needs(**resources: Any) -> dict[str, Any]:
    return {"resources": resources}


def gang(name: str, *steps: Step, workers: int = 2, **policy: Any) -> Case:
    job = mpijob(
        f"gang-{name}",
        replicas(workers, container=needs(requests={"cpu": "2"}, limits={"nvidia.com/gpu": 1})),
        launcher(container=needs(requests={"cpu": "1"}, limits={"cpu": "3", "memory": "1Gi"})),
        run_policy={"schedulingPolicy": policy} if policy else None,
    )
    return Case(job, steps or _STARTS)


def prioritized(name: str, ours: str, theirs: str, **policy: Any) -> Case:
    return Case(
        mpijob(
            f"gang-{name}",
            replicas(3, container=needs(requests={"cpu": "2"}), priorityClassName=theirs),
            launcher(container=needs(requests={"cpu": "1"}), priorityClassName=ours),
            run_policy={"schedulingPolicy": policy} if policy else None,
        ),
        (),
    )


_HIGH: Final = "system-node-critical"
_LOW: Final = "system-cluster-critical"

CASES: Final = (
    gang("plain", *RUN),
    gang("min-available", minAvailable=2),
    gang("min-available-one", minAvailable=1),
    gang("min-available-all", minAvailable=3),
    gang("min-available-above", minAvailable=4),
    gang("worker-succeeds", *_STARTS, worker_ends(1, "Succeeded")),
    gang("queue", queue="fast"),
    gang("priority-class", priorityClass="high"),
    gang("min-resources", minResources={"cpu": "7"}),
    gang("timeout", scheduleTimeoutSeconds=90),
    gang("scaled", *_STARTS, scales(4), workers_run()),
    gang("suspended", *_STARTS, suspends(), resumes(), *RUN),
    Case(mpijob("gang-noted", metadata={"annotations": _QUEUE}), ()),
    Case(mpijob("gang-first", run_policy={"suspend": True}), (resumes(), *_STARTS)),
    Case(mpijob("gang-waits", launcherCreationPolicy="WaitForWorkersReady"), RUN),
    Case(mpijob("gang-alone", None, runLauncherAsWorker=True), RUN),
    Case(mpijob("gang-alone-waits", None, launcherCreationPolicy="WaitForWorkersReady"), RUN),
    *(
        Case(
            mpijob(f"gang-clean-{policy}".lower(), run_policy={"cleanPodPolicy": policy}),
            (*_STARTS, launcher_succeeds()),
        )
        for policy in ("None", "Running", "All")
    ),
    prioritized("launcher-higher", _HIGH, _LOW, minAvailable=2),
    prioritized("worker-higher", _LOW, _HIGH, minAvailable=2),
    prioritized("unknown-class", "missing", "missing"),
    Case(mpijob("gang-scheduler", 1, launcher(schedulerName="mine")), ()),
)

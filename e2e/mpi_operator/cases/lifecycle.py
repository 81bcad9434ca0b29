"""What happens to the objects of a job while it lives."""

from typing import Any, Final

from dlctl.api.meta import CONFIG_MAPS, SERVICES
from e2e.mpi_operator.case import IMAGE, Case, launcher, mpijob
from e2e.mpi_operator.cases.spec import RUN
from e2e.mpi_operator.steps import (
    deletes,
    edits,
    launcher_fails,
    launcher_runs,
    launcher_succeeds,
    scales,
    until_ended,
    worker_ends,
    workers_run,
)

_STARTS: Final = (workers_run(), launcher_runs())
_CONFIG: Final = "-config"


def once(name: str, *steps: Any, workers: int = 2, **spec: Any) -> Case:
    job = mpijob(name, workers, launcher(restart="Never"), run_policy={"backoffLimit": 0}, **spec)
    return Case(job, steps)


def taken(kind: str, suffix: str, **fields: Any) -> Case:
    """Return a case in which somebody else's object has one of the names of a job's objects."""
    name = f"taken-{kind.lower()}"
    obj = {"kind": kind, "metadata": {"name": name + suffix}, **fields}
    return Case(mpijob(name), _STARTS, (obj,))


_POD: Final = {"containers": [{"name": "a", "image": IMAGE}], "restartPolicy": "Never"}

CASES: Final = (
    once(
        "worker-fails", *_STARTS, worker_ends(1, "Failed", "OOMKilled", "gone"), launcher_succeeds()
    ),
    once(
        "worker-and-launcher", *_STARTS, worker_ends(0, "Failed"), launcher_fails(), until_ended()
    ),
    once("worker-fails-first", worker_ends(0, "Failed"), launcher_runs(), launcher_succeeds()),
    once(
        "worker-evicted", *_STARTS, worker_ends(0, "Failed", "Evicted", "low"), launcher_succeeds()
    ),
    once(
        "workers-succeed",
        *_STARTS,
        worker_ends(0, "Succeeded"),
        worker_ends(1, "Succeeded"),
        launcher_succeeds(),
    ),
    once(
        "worker-deleted", *_STARTS, deletes("Pod", "-worker-0"), workers_run(), launcher_succeeds()
    ),
    once(
        "launcher-deleted",
        *_STARTS,
        deletes("Job", "-launcher"),
        launcher_runs(),
        launcher_succeeds(),
    ),
    once(
        "succeeded-worker-deleted",
        *_STARTS,
        worker_ends(0, "Succeeded"),
        deletes("Pod", "-worker-0"),
        launcher_succeeds(),
    ),
    once("launcher-deleted-late", *RUN, deletes("Job", "-launcher")),
    once("workers-deleted-late", *RUN, deletes("Pod", "-worker-0")),
    once("scaled-out", *_STARTS, scales(4), workers_run(), launcher_succeeds()),
    once("scaled-in", *_STARTS, scales(1), launcher_succeeds(), workers=3),
    once(
        "scaled-in-as-worker",
        *_STARTS,
        scales(1),
        launcher_succeeds(),
        workers=3,
        runLauncherAsWorker=True,
    ),
    once(
        "workers-removed",
        *_STARTS,
        edits("no workers", spec={"mpiReplicaSpecs": {"Worker": None}}),
        launcher_succeeds(),
    ),
    once("as-worker-edited", *_STARTS, edits("as worker", spec={"runLauncherAsWorker": True})),
    once("slots-edited", *_STARTS, edits("slots 4", spec={"slotsPerWorker": 4})),
    once("implementation-edited", *_STARTS, edits("MPICH", spec={"mpiImplementation": "MPICH"})),
    once(
        "hostfile-edited", *_STARTS, edits("hostfile", CONFIG_MAPS, _CONFIG, data={"hostfile": "x"})
    ),
    once("service-edited", *_STARTS, edits("selector", SERVICES, spec={"selector": {"mine": "1"}})),
    once("config-deleted", *_STARTS, deletes("ConfigMap", _CONFIG)),
    once("service-deleted", *_STARTS, deletes("Service")),
    once("secret-deleted", *_STARTS, deletes("Secret", "-ssh")),
    taken("Service", "", spec={"clusterIP": "None", "selector": {"a": "b"}}),
    taken("ConfigMap", _CONFIG, data={"a": "b"}),
    taken("Secret", "-ssh", stringData={"a": "b"}),
    taken("Job", "-launcher", spec={"suspend": True, "template": {"spec": _POD}}),
    taken("Pod", "-worker-1", spec=_POD),
)

"""What is refused, by the server or by the operator."""

from typing import Any, Final

from e2e.mpi_operator.case import Case, launcher, mpijob, replicas


def specs(name: str, **specs_: Any) -> Case:
    return Case(mpijob(name, mpiReplicaSpecs=specs_))


_EMPTY: Final = {"replicas": 1, "template": {"spec": {"containers": []}}}

CASES: Final = (
    Case(mpijob("no-workers-wanted", 0)),
    Case(mpijob("worker-replicas-unset", replicas())),
    Case(mpijob("two-launchers", 1, launcher(2))),
    Case(mpijob("no-launchers-wanted", 1, launcher(0))),
    specs("no-launcher", Worker=replicas(1)),
    specs("no-types"),
    specs("unknown-type", Launcher=launcher(), Master=replicas(1)),
    specs("no-template", Launcher={"replicas": 1}, Worker={"replicas": 1}),
    specs("no-containers", Launcher=_EMPTY, Worker=replicas(1)),
    specs("no-worker-containers", Launcher=launcher(), Worker=_EMPTY),
    Case(mpijob("no-specs", mpiReplicaSpecs=None)),
    Case(mpijob("t" * 55)),
    Case(mpijob("u" * 54, 11)),
    Case(mpijob("v" * 63)),
    Case(mpijob("1-digit")),
    Case(mpijob("with.dot")),
    Case(mpijob("exit-code", replicas(1, restart="ExitCode"))),
    Case(mpijob("always", 1, launcher(restart="Always"))),
    Case(mpijob("slots-negative", slotsPerWorker=-1)),
    Case(mpijob("slots-text", slotsPerWorker="2")),
    Case(mpijob("implementation-unknown", mpiImplementation="LAM")),
    Case(mpijob("clean-empty", run_policy={"cleanPodPolicy": ""})),
    Case(mpijob("clean-unknown", run_policy={"cleanPodPolicy": "Most"})),
    Case(mpijob("ttl-negative", run_policy={"ttlSecondsAfterFinished": -1})),
    Case(mpijob("deadline-negative", run_policy={"activeDeadlineSeconds": -1})),
    Case(mpijob("deadline-zero", run_policy={"activeDeadlineSeconds": 0})),
    Case(mpijob("backoff-negative", run_policy={"backoffLimit": -1})),
    Case(
        mpijob("many-errors", 0, launcher(2), slotsPerWorker=-1, run_policy={"cleanPodPolicy": "x"})
    ),
    Case(mpijob("pod-refused", replicas(1, container={"name": "Not_A_Name"}))),
    Case(mpijob("launcher-refused", 1, launcher(container={"name": "Not_A_Name"}))),
)

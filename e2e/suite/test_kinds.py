"""A small job of each of Kubeflow's kinds, from start to end; all at the same time."""

from collections.abc import Iterator

import pytest

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite.kubeflow import BY_NAME, KINDS, KWOK_NODE, KubeflowKind, true_conditions
from e2e.suite.namespaces import own_namespace

LABELS = "training.kubeflow.org"
# Its launcher's image does not exist: it only starts on simulated nodes.
MPI = BY_NAME["MPIJob"]
REAL = [kind for kind in KINDS if kind is not MPI]


@pytest.fixture(scope="module")
def submitted(cluster: Kubectl, controller: Kubectl) -> Iterator[Kubectl]:
    """One lasting job of each kind, and one with a TTL of zero."""
    brief: JSON = {"ttlSecondsAfterFinished": 0}
    with own_namespace(cluster) as kubectl:
        kubectl.apply(
            *(kind.job("stays", ["true"]) for kind in REAL),
            *(kind.job("goes", ["true"], runPolicy=brief) for kind in REAL[:2]),
            MPI.job("stays", ["sleep", "1000"], pod=KWOK_NODE),
        )
        yield kubectl


@pytest.mark.parametrize("kind", REAL, ids=lambda kind: kind.name)
def test_job_succeeds_with_the_pods_and_labels_of_its_operator(
    kind: KubeflowKind, namespace: Kubectl
) -> None:
    status = reached(namespace, kind, "Succeeded")
    assert status["completionTime"]
    name = kind.called("stays")
    header, row = namespace("get", kind.resource, name).splitlines()
    assert dict(zip(header.split(), row.split(), strict=True))["STATE"] == "Succeeded"
    selector = f"{LABELS}/job-name={name},{LABELS}/operator-name={kind.name.lower()}-controller"
    pods = [pod["metadata"]["name"] for pod in namespace.items("pods", selector)]
    expected = [
        f"{name}-{type_.lower()}-{index}"
        for type_, count in kind.replicas.items()
        for index in range(count)
    ]
    assert sorted(pods) == sorted(expected)


@pytest.mark.parametrize("kind", REAL[:2], ids=lambda kind: kind.name)
def test_job_is_deleted_after_its_time_to_live(kind: KubeflowKind, namespace: Kubectl) -> None:
    namespace.until(
        lambda: namespace.get(kind.resource, kind.called("goes")) is None,
        within_s=60,
        what=f"the {kind.name} to be deleted that is not to stay",
    )


def test_launcher_starts_when_the_workers_run(namespace: Kubectl) -> None:
    status = reached(namespace, MPI, "Running")
    assert status["replicaStatuses"]["Launcher"]["active"] == 1
    files = namespace.get("configmap", "stays-mpi-config")
    assert files
    namespace.until(
        lambda: (
            "stays-mpi-worker-0" in namespace("get", "configmap", "stays-mpi-config", "-o", "yaml")
        ),
        within_s=30,
        what="the worker to be listed",
    )
    assert "stays-mpi-worker-0 slots=1" in files["data"]["hostfile"]


def reached(kubectl: Kubectl, kind: KubeflowKind, condition: str) -> JSON:
    """Wait for a condition of the kind's job, and return its status."""

    def probe() -> JSON | None:
        status = (kubectl.get(kind.resource, kind.called("stays")) or {}).get("status") or {}
        return status if condition in true_conditions(status) else None

    return kubectl.until(probe, within_s=90, what=f"the {kind.name} to be {condition}")

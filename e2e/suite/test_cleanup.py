"""Pods that remain on real nodes under each cleanPodPolicy; all jobs run at the same time.

The kubelet reports the phase of a pod a second after its last container's exit; simulated nodes do
not by default.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs
from e2e.suite.kubeflow import KINDS, KubeflowKind
from e2e.suite.namespaces import own_namespace

POLICIES: Final = ("None", "Running", "All")
REAL: Final = [kind for kind in KINDS if kind.name != "MPIJob"]
_GRACE: Final = {"terminationGracePeriodSeconds": 1}
_FOREVER: Final = ("sh", "-c", "sleep 1000")
# Workers of jobs with a chief continue after its end.
_CHIEF_ENDS: Final = ("sh", "-c", "case $HOSTNAME in *-worker-*) sleep 1000;; esac")
_UPLOAD: Final = ("sh", "-c", "sleep 15; echo uploaded")


@pytest.fixture(scope="module")
def submitted(cluster: Kubectl, controller: Kubectl) -> Iterator[Kubectl]:
    """A job of each family and kind for each policy, and one whose sidecar outlives its program."""
    with own_namespace(cluster) as kubectl:
        kubectl.apply(
            *(listed(policy) for policy in POLICIES),
            *(mapped(kind, policy) for kind in REAL for policy in POLICIES),
            with_sidecar(),
        )
        yield kubectl


def listed(policy: str) -> JSON:
    """Return a job in the list form: its scheduler ends, its worker continues."""
    scheduler = jobs.replicas("SCHEDULER", 1, ("true",), **_GRACE)
    worker = jobs.replicas("WORKER", 1, _FOREVER, **_GRACE)
    chief = {"chief": {"replicaName": "SCHEDULER", "replicaIndex": 0}}
    return jobs.mxjob(
        f"list-{policy.lower()}",
        scheduler,
        worker,
        jobMode="dist",
        terminationPolicy=chief,
        cleanupPodPolicy=policy,
    )


def mapped(kind: KubeflowKind, policy: str) -> JSON:
    command = _CHIEF_ENDS if has_chief(kind) else ("true",)
    run_policy = {"cleanPodPolicy": policy}
    return kind.job(policy.lower(), command, pod=_GRACE, runPolicy=run_policy)


def with_sidecar() -> JSON:
    sidecar = {"name": "upload", "image": jobs.IMAGE, "command": list(_UPLOAD)}
    worker = jobs.replicas("WORKER", 1, ("true",))
    worker["template"]["spec"]["containers"].append(sidecar)
    return jobs.mxjob("sidecar", worker, cleanupPodPolicy="Running")


def has_chief(kind: KubeflowKind) -> bool:
    return set(kind.replicas) != {"Worker"}


@pytest.mark.parametrize("policy", POLICIES)
def test_list_form_pods_are_cleaned_up_by_the_policy(namespace: Kubectl, policy: str) -> None:
    name = f"list-{policy.lower()}"
    assert jobs.ended(namespace, name)["state"] == "Succeeded"
    await_remaining_pods(namespace, name, policy, ended=["scheduler"], others=["worker"])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", REAL, ids=lambda kind: kind.name)
def test_map_form_pods_are_cleaned_up_by_the_policy(
    namespace: Kubectl, kind: KubeflowKind, policy: str
) -> None:
    name = kind.called(policy.lower())

    def is_done() -> bool:
        own = jobs.status(namespace, name, kind.resource).get("dlctl") or {}
        return bool(own.get("phase") == "Done")

    namespace.until(is_done, within_s=120, what=f"the end of {name}")
    types = [t.lower() for t, count in kind.replicas.items() for _ in range(count)]
    ended = [t for t in types if t != "worker" or not has_chief(kind)]
    await_remaining_pods(
        namespace, name, policy, ended=ended, others=[t for t in types if t not in ended]
    )


def test_sidecar_finishes_after_its_job(namespace: Kubectl) -> None:
    assert jobs.ended(namespace, "sidecar")["completionTime"]

    def uploaded() -> bool:
        (pod,) = pods(namespace, "sidecar")
        return bool(pod["status"]["phase"] == "Succeeded")

    namespace.until(uploaded, within_s=60, what="the sidecar to end by itself")
    (pod,) = pods(namespace, "sidecar")
    assert "uploaded" in namespace("logs", pod["metadata"]["name"], "-c", "upload")


def await_remaining_pods(
    kubectl: Kubectl, name: str, policy: str, *, ended: list[str], others: list[str]
) -> None:
    """Wait until exactly the pods that the policy keeps remain, by replica type."""
    expected = {"None": [*ended, *others], "Running": ended, "All": []}[policy]

    def probe() -> bool:
        found = [type_of(pod, name) for pod in pods(kubectl, name)]
        return sorted(found) == sorted(expected)

    kubectl.until(probe, within_s=60, what=f"{expected or 'no pods'} to be left of {name}")
    for pod in pods(kubectl, name):
        if type_of(pod, name) in ended:
            kubectl("logs", pod["metadata"]["name"])
            assert not pod["metadata"].get("deletionTimestamp")


def pods(kubectl: Kubectl, name: str) -> list[JSON]:
    return [p for p in kubectl.items("pods") if p["metadata"]["name"].startswith(f"{name}-")]


def type_of(pod: JSON, job: str) -> str:
    return str(pod["metadata"]["name"]).removeprefix(f"{job}-").split("-")[0]

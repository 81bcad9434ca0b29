"""Deleting running jobs, their namespaces and CRDs leaves nothing behind and causes no loops."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e import controller_metrics, install
from e2e.kubectl import Kubectl
from e2e.suite import jobs

MXJOBS: Final = "mxjobs.kubeflow.org"
# The kind whose CRD is deleted for a while; no other test runs meanwhile.
DELETED_CRD: Final = "mxjobs.fioravanzo.org"
# Scheduler, server and worker.
SIZE: Final = 3
ROUNDS: Final = 4
ERRORS: Final = (
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_timeouts_total",
    "dlctl_events_dropped_total",
)
QUIET_S: Final = 4.0


def is_established(cluster: Kubectl) -> bool:
    # A new CRD has no conditions at all, which ``kubectl wait`` takes for an error.
    definition = cluster.get("crd", DELETED_CRD) or {}
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def distributed(name: str, api_version: str = "kubeflow.org/v1alpha1", **spec: Any) -> JSON:
    """Return a job that runs until it is deleted, and then ends quickly."""
    sleep = ("sleep", "3600")
    entries = [
        jobs.replicas(type_, 1, sleep, terminationGracePeriodSeconds=1)
        for type_ in ("SCHEDULER", "SERVER", "WORKER")
    ]
    return {
        "apiVersion": api_version,
        "kind": "MXJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": entries, **spec},
    }


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_deleted_job_takes_its_children_along(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(distributed("gone"), distributed("stays"))
    for name in ("gone", "stays"):
        jobs.running(kubectl, name)
    assert [len(found) for found in (pods(kubectl, "gone"), services(kubectl, "gone"))] == [SIZE, 1]

    kubectl("delete", MXJOBS, "gone", f"--cascade={cascade}")
    if cascade == "foreground":
        # It lasts as long as its children.
        assert not pods(kubectl, "gone") + services(kubectl, "gone")
    kubectl.until(
        lambda: not pods(kubectl, "gone") + services(kubectl, "gone"),
        within_s=60,
        what="the end of all children",
    )
    assert {pod["status"]["phase"] for pod in pods(kubectl, "stays")} == {"Running"}


def test_orphans_are_not_adopted_and_keep_their_names(kubectl: Kubectl) -> None:
    job = distributed("parent", RuntimeId="abcd")
    kubectl.apply(job)
    jobs.running(kubectl, "parent")
    orphans = {uid(pod) for pod in complete(kubectl, "parent")}
    kubectl("delete", MXJOBS, "parent", "--cascade=orphan")
    assert {uid(pod) for pod in pods(kubectl, "parent")} == orphans

    kubectl.apply(job)
    kubectl.until(
        lambda: "belongs to no controller" in conditions(kubectl, "parent").get("Waiting", ""),
        within_s=30,
        what="a word on whose the names are",
    )
    assert {uid(pod) for pod in pods(kubectl, "parent")} == orphans

    kubectl("delete", "pods,services", "--selector=mx_job_name=parent")
    jobs.running(kubectl, "parent")
    assert orphans.isdisjoint(uid(pod) for pod in complete(kubectl, "parent"))


def test_job_can_be_deleted_and_recreated_at_once(kubectl: Kubectl) -> None:
    # One whose children have the same names each time, and one whose children do not.
    recreated = [distributed("same", RuntimeId="abcd"), distributed("other")]
    kubectl.apply(*recreated)
    for number in range(ROUNDS):
        if number % 2 == 0:
            complete(kubectl, "same")
        kubectl("delete", MXJOBS, "same", "other", "--wait=false")
        kubectl.apply(*recreated)
    for job in recreated:
        name = job["metadata"]["name"]
        status = jobs.running(kubectl, name)
        only_of(kubectl, name, uid(kubectl.get(MXJOBS, name) or {}))
        # Terminations of the previous pods are not this job's.
        assert "restarts" not in status
        assert "failure" not in status


def test_deleted_namespace_leaves_nothing_behind(
    kubectl: Kubectl, cluster: Kubectl, controller: Kubectl
) -> None:
    names = [f"job-{number}" for number in range(4)]
    kubectl.apply(*map(distributed, names))
    for name in names:
        jobs.running(kubectl, name)

    with no_errors(controller):
        cluster("delete", "namespace", kubectl.namespace, within_s=90)
    # Nor in the metrics. Counters stay for a day, for the next scrape.
    current = [
        sample
        for sample in controller_metrics.samples(controller)
        if not sample.name.endswith(("_total", "_created"))
    ]
    assert not [s for s in current if kubectl.namespace in s.labels.values()]


def test_deleted_crd_takes_its_jobs_along_and_can_be_reinstalled(
    kubectl: Kubectl,
    cluster: Kubectl,
    controller: Kubectl,
    record_property: Callable[[str, object], None],
) -> None:
    job = distributed("doomed", "fioravanzo.org/v1alpha1")
    kubectl.apply(job)
    jobs.running(kubectl, "doomed", DELETED_CRD)
    processes = containers(controller)
    try:
        with no_errors(controller):
            cluster("delete", "crd", DELETED_CRD)
            kubectl.until(
                lambda: not kubectl.items("pods") + services(kubectl, "doomed"),
                within_s=60,
                what="the end of all children",
            )
            # Other kinds are not affected.
            kubectl.apply(jobs.mxjob("ok", jobs.replicas("WORKER", 1, ("true",))))
            assert jobs.ended(kubectl, "ok")["phase"] == "Done"
        for pod in install.controllers(controller):
            assert controller_metrics.ask(controller, pod["metadata"]["name"], "readyz") == "ok"
    finally:
        cluster.apply(crd(DELETED_CRD))
        cluster.until(
            lambda: is_established(cluster), within_s=30, what="the CRD to be established"
        )
    began = time.monotonic()
    kubectl.apply(job)
    jobs.running(kubectl, "doomed", DELETED_CRD, within_s=90)
    took_s = time.monotonic() - began
    record_property("a job of a kind that is back runs after", f"{took_s:.1f} s")
    assert containers(controller) == processes


@contextmanager
def no_errors(controller: Kubectl) -> Iterator[None]:
    """Check that no controller has errors, and that all become idle."""
    before = controller_metrics.total(controller, *ERRORS)
    yield
    deadline = time.monotonic() + 60
    reconciled = -1.0
    while reconciled != (
        reconciled := controller_metrics.total(controller, "controller_runtime_reconcile_total")
    ):
        assert time.monotonic() < deadline, "the controllers do not come to rest"
        time.sleep(QUIET_S)
    assert controller_metrics.total(controller, *ERRORS) == before


def containers(controller: Kubectl) -> dict[str, int]:
    """Return the number of container restarts of each controller."""
    return {
        uid(pod): sum(status["restartCount"] for status in pod["status"]["containerStatuses"])
        for pod in install.controllers(controller)
    }


def crd(name: str) -> JSON:
    text = (install.MANIFESTS / "base" / "crds.yaml").read_text()
    found: list[JSON] = [d for d in yaml.safe_load_all(text) if d["metadata"]["name"] == name]
    return found[0]


def complete(kubectl: Kubectl, name: str) -> list[JSON]:
    """Wait for the pods of all replicas, and return them."""

    def probe() -> list[JSON] | None:
        found = [pod for pod in pods(kubectl, name) if "deletionTimestamp" not in pod["metadata"]]
        return found if len(found) == SIZE else None

    return kubectl.until(probe, within_s=60, what=f"{SIZE} pods of {name}")


def only_of(kubectl: Kubectl, name: str, owner: str) -> None:
    """Wait until all children belong to one owner, and none is missing."""

    def probe() -> bool:
        found = pods(kubectl, name) + services(kubectl, name)
        owners = [ref["uid"] for child in found for ref in child["metadata"]["ownerReferences"]]
        return owners == [owner] * (SIZE + 1)

    kubectl.until(probe, within_s=60, what=f"children of the last {name}, and of no other")


def pods(kubectl: Kubectl, name: str) -> list[JSON]:
    return kubectl.items("pods", f"mx_job_name={name}")


def services(kubectl: Kubectl, name: str) -> list[JSON]:
    return kubectl.items("services", f"mx_job_name={name}")


def conditions(kubectl: Kubectl, name: str) -> dict[str, str]:
    stated = jobs.status(kubectl, name).get("conditions", ())
    return {condition["type"]: condition["message"] for condition in stated}


def uid(obj: JSON) -> str:
    found: str = obj["metadata"]["uid"]
    return found

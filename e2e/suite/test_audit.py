"""The controller's account in the audit log: it is never forbidden, and needs all its rights.

Requests that earlier tests may not have caused are caused here, so that this works alone, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e import install
from e2e.kubectl import Kubectl
from e2e.suite import jobs, kubeflow_grants, kueue_grants, scaling_grants
from e2e.suite.namespaces import own_namespace
from e2e.testbed import ClusterTestbed

OTHERS: Final = {
    "kubeflow": "mxjobs.kubeflow.org",
    "fioravanzo": "mxjobs.fioravanzo.org",
    "mpba-mx": "mxjobs.mpba.fbk.eu",
    "mpba-tf": "tfjobs.mpba.fbk.eu",
}
Grant = tuple[str, str, str]
# Not in the log: servers check it internally for exec by GET. Launchers get it by their roles,
# which the controller can only grant if it has it.
HELD: Final = {("", "pods/exec", "create")}
# From Kubernetes 1.36 on, the server clears the start time of a suspended Job itself.
BEFORE_1_36: Final = {("batch", "jobs/status", "patch")}


def granted() -> set[Grant]:
    """Return group, resource and verb of all rules in the manifests."""
    documents = [
        document
        for name in ("rbac.yaml", "election.yaml")
        for document in yaml.safe_load_all((install.MANIFESTS / "base" / name).read_text())
    ]
    return {
        (group, resource, verb)
        for document in documents
        for rule in document.get("rules", ())
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def grant_of(request: JSON) -> Grant:
    """Return the right that a request needs; a non-resource path stands for itself."""
    about = request.get("objectRef")
    if not about:
        return "", request["requestURI"], request["verb"]
    parts = [about["resource"], about.get("subresource", "")]
    return about.get("apiGroup", ""), "/".join(filter(None, parts)), request["verb"]


def demanded_by_admission(children: list[JSON]) -> set[Grant]:
    """Return the rights that OwnerReferencesPermissionEnforcement required for children.

    They are not in the log: the API server checks them internally.
    """
    owners = [o for child in children for o in child["metadata"].get("ownerReferences", ())]
    # The cluster creates the pods of Jobs.
    owners = [owner for owner in owners if owner["apiVersion"] != "batch/v1"]
    return {
        (owner["apiVersion"].partition("/")[0], f"{owner['kind'].lower()}s/finalizers", "update")
        for owner in owners
        if owner.get("blockOwnerDeletion")
    }


def bare_list(kind: str, container: str, *types: str) -> JSON:
    """Return a job in dl-operator's form."""
    spec = {"containers": [{"name": container, "image": jobs.IMAGE, "command": ["true"]}]}
    entries = [{"replicaType": t, "replicas": 1, "template": {"spec": spec}} for t in types]
    name = f"mpba-{container[:2].replace('te', 'tf')}"
    meta = {"name": name}
    return {"apiVersion": "mpba.fbk.eu/v1", "kind": kind, "metadata": meta, "spec": entries}


def distributed(name: str, **spec: Any) -> JSON:
    """Return a job that ends at once, and has a service."""
    types = ("SCHEDULER", "WORKER")
    job = jobs.mxjob(name, *(jobs.replicas(t, 1, ["true"]) for t in types), jobMode="dist")
    return {**job, "spec": {**job["spec"], **spec}}


def submit(kubectl: Kubectl) -> None:
    """Create a job of every kind, two with taken names, and one that keeps failing."""
    taken_pod = {"metadata": {"name": "one-worker-abcd-0"}, "apiVersion": "v1", "kind": "Pod"}
    template = jobs.replicas("WORKER", 1, ["true"], nodeName="nowhere")["template"]
    taken_service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "two-scheduler-abcd-0"},
        "spec": {"ports": [{"port": 80}]},
    }
    brief = {"runPolicy": {"ttlSecondsAfterFinished": 0}}
    kubectl.apply({**taken_pod, **template}, taken_service)
    kubectl.apply(
        distributed("one", RuntimeId="abcd"),
        distributed("two", RuntimeId="abcd"),
        jobs.mxjob("again", jobs.replicas("WORKER", 1, ["sh", "-c", "exit 143"])),
        distributed("brief", **brief),
        {**distributed("brief", **brief), "apiVersion": "fioravanzo.org/v1alpha1"},
        distributed("kubeflow"),
        {**distributed("fioravanzo"), "apiVersion": "fioravanzo.org/v1alpha1"},
        bare_list("MXJob", "mxnet", "SCHEDULER", "WORKER"),
        bare_list("TFJob", "tensorflow", "PS", "WORKER"),
    )


def await_all(kubectl: Kubectl) -> None:
    for name, resource in OTHERS.items():
        assert jobs.ended(kubectl, name, resource, within_s=120)["phase"] == "Done"
    for resource in (OTHERS["kubeflow"], OTHERS["fioravanzo"]):
        gone = partial(is_gone, kubectl, resource, "brief")
        kubectl.until(gone, within_s=60, what="the job to be deleted that is not to stay")
    for name in ("one", "two"):
        probe = partial(is_waiting, kubectl, name)
        kubectl.until(probe, within_s=60, what=f"{name} to wait")
    kubectl.until(
        lambda: any(event["count"] > 1 for event in kubectl.items("events") if event_line(event)),
        within_s=90,
        what="an event that is counted up",
    )


def is_gone(kubectl: Kubectl, resource: str, name: str) -> bool:
    return kubectl.get(resource, name) is None


def is_waiting(kubectl: Kubectl, name: str) -> bool:
    conditions = jobs.status(kubectl, name).get("conditions", ())
    return any(c["type"] == "Waiting" and c["status"] == "True" for c in conditions)


def event_line(event: JSON) -> bool:
    return bool(event["source"].get("component") == "dlctl")


def lose_lease(controller: Kubectl) -> None:
    """Delete the lease under its holder, which recreates it."""
    controller("delete", "lease", "dlctl")
    controller.until(lambda: controller.get("lease", "dlctl"), within_s=30, what="a new lease")


def await_server(cluster: Kubectl) -> None:
    cluster.until(cluster.is_ready, within_s=180, what="the API server")


@pytest.fixture(scope="module")
def used(testbed: ClusterTestbed, cluster: Kubectl, controller: Kubectl) -> Iterator[set[Grant]]:
    """The rights that the account has used in the whole run."""
    # Lists are only used with servers that do not stream them, such as 1.33 by default.
    with testbed.without_feature("WatchList"):
        await_server(cluster)
        with kueue_grants.workloads_served(cluster), own_namespace(cluster) as kubectl:
            controller("rollout", "restart", "deployment/dlctl")
            install.rolled_out(cluster)
            submit(kubectl)
            kubeflow_grants.submit(kubectl)
            scaling_grants.submit(kubectl)
            kubeflow_grants.have_taken_over(kubectl)
            lose_lease(controller)
            await_all(kubectl)
            kubeflow_grants.await_all(kubectl)
            scaling_grants.await_all(kubectl)
            demanded = demanded_by_admission([*kubectl.items("pods"), *kubectl.items("services")])
            demanded |= scaling_grants.demanded_by_admission(kubectl)
            yield demanded | {grant_of(request) for request in requests(testbed, controller)}
    await_server(cluster)


def requests(testbed: ClusterTestbed, controller: Kubectl) -> Iterator[JSON]:
    """Yield the requests of the current account, not of one of an earlier installation."""
    account = controller.get("serviceaccount", "dlctl")
    assert account
    uid = account["metadata"]["uid"]
    yield from (request for request in testbed.audit() if request["user"].get("uid") == uid)


def test_service_account_uses_nothing_beyond_its_role(used: set[Grant]) -> None:
    assert used - granted() == kueue_grants.DISCOVERY


def test_service_account_uses_all_of_its_role(used: set[Grant]) -> None:
    assert granted() - used - BEFORE_1_36 == HELD


@pytest.mark.usefixtures("used")
def test_service_account_is_never_forbidden(testbed: ClusterTestbed, controller: Kubectl) -> None:
    # Not rejections by admission, such as of pods in a terminating namespace.
    # A server that has just started does not know all rules yet, so the last response counts.
    decisions = {
        grant_of(request): request["annotations"].get("authorization.k8s.io/decision")
        for request in requests(testbed, controller)
    }
    assert {grant for grant, decision in decisions.items() if decision != "allow"} == set()

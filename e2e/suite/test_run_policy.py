"""Run policies on real nodes: suspension, active deadline and TTL."""

import json

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs


def test_suspended_job_has_no_pods_until_it_is_resumed(kubectl: Kubectl) -> None:
    jobs.start_until_released(kubectl, SCHEDULER=1, WORKER=2)
    before = uids(kubectl)
    suspend(kubectl, True)
    kubectl.until(lambda: not uids(kubectl), within_s=60, what="the pods to go")
    assert jobs.status(kubectl, jobs.WAITING)["phase"] == "Suspended"

    suspend(kubectl, False)
    jobs.running(kubectl, jobs.WAITING)
    assert len(uids(kubectl)) == 3
    assert not uids(kubectl) & before
    status = jobs.release(kubectl)
    assert "restarts" not in status
    assert [c["type"] for c in status["conditions"]][1] == "Suspended"


def test_idle_job_fails_at_its_deadline_and_is_deleted_after_its_ttl(kubectl: Kubectl) -> None:
    policy = {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 5}
    wait = ["sh", "-c", "sleep 1000"]
    worker = jobs.replicas("WORKER", 1, wait, terminationGracePeriodSeconds=1)
    kubectl.apply(jobs.mxjob("quiet", worker, runPolicy=policy))
    status = jobs.ended(kubectl, "quiet")
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "DeadlineExceeded")
    gone = kubectl.until(lambda: is_gone(kubectl, "quiet"), within_s=60, what="the job to go")
    assert gone
    assert jobs.events(kubectl, "quiet", "SuccessfulDeleteJob") == ["Deleted job: quiet"]


def suspend(kubectl: Kubectl, value: bool) -> None:
    patch: JSON = {"spec": {"runPolicy": {"suspend": value}}}
    kubectl("patch", "mxjobs.kubeflow.org", jobs.WAITING, "--type=merge", "-p", json.dumps(patch))


def uids(kubectl: Kubectl) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kubectl.items("pods")}


def is_gone(kubectl: Kubectl, name: str) -> bool:
    return kubectl.get("mxjobs.kubeflow.org", name) is None

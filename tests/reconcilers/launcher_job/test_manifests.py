"""The Job of a launcher and the patches of it."""

from typing import Any

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.launcher_job import manifests
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite
from tests.builders import kind_of
from tests.reconcilers.launcher_job.builders import LAUNCHER, batch_job, mpi_job

ALL_SET = LauncherJob(backoff_limit=2, active_deadline_s=60, ttl_after_finished_s=5)


def rendered(job: Job, *, suspended: bool = False) -> dict[str, Any]:
    dialect = kind_of("kubeflow.org/v1", "MPIJob").dialects["v1"]
    return Renderer(job, dialect).launcher_job(suspended=suspended)


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"own": "1"}}, "spec": {"containers": [], **spec}}


def resumption(existing_selector: dict[str, str], **spec: Any) -> Any:
    existing = batch_job(suspended=True, node_selector=existing_selector)
    planned = LauncherJobWrite(LauncherJobAction.RESUME, existing)
    return manifests.patch(mpi_job(), planned, template(**spec))


def test_job_is_named_and_owned_like_a_child() -> None:
    made = rendered(mpi_job())
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    assert made["metadata"]["name"] == "pi-launcher"
    assert made["metadata"]["labels"] == {"app": "pi", MANAGED_BY_LABEL: MANAGED_BY}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "job-uid"


def test_fields_of_the_job_are_those_of_the_user_without_the_ttl() -> None:
    spec = rendered(mpi_job(ALL_SET))["spec"]
    del spec["template"]
    assert spec == {
        "backoffLimit": 2,
        "activeDeadlineSeconds": 60,
        "podReplacementPolicy": "Failed",
    }


def test_fields_that_are_not_set_are_left_to_the_server() -> None:
    spec = rendered(mpi_job())["spec"]
    assert spec.keys() == {"podReplacementPolicy", "template"}


def test_suspended_job_is_created_suspended() -> None:
    assert rendered(mpi_job(), suspended=True)["spec"]["suspend"] is True


def test_template_is_the_pod_without_its_identity() -> None:
    job = mpi_job()
    pod = Renderer(job, kind_of("kubeflow.org/v1", "MPIJob").dialects["v1"]).pod(LAUNCHER)
    found = rendered(job)["spec"]["template"]
    assert found["spec"] == pod["spec"]
    assert found["metadata"].keys() <= {"labels", "annotations", "finalizers"}
    assert found["metadata"]["labels"][MANAGED_BY_LABEL] == MANAGED_BY


def test_launcher_without_a_job_is_not_rendered_as_one() -> None:
    job = attrs.evolve(mpi_job(), launcher_job=None)
    assert job.has_own_pod(LAUNCHER)


def test_start_time_is_cleared_in_the_status() -> None:
    planned = LauncherJobWrite(LauncherJobAction.CLEAR_START_TIME, batch_job(suspended=True))
    assert manifests.patch(mpi_job(), planned, {}) == ({"status": {"startTime": None}}, "status")


def test_resumption_replaces_the_placement() -> None:
    toleration, gate = {"key": "gpu"}, {"name": "topology"}
    body, subresource = resumption(
        {"zone": "a", "old": "1"},
        nodeSelector={"zone": "b"},
        tolerations=[toleration],
        schedulingGates=[gate],
    )
    assert subresource == ""
    assert body["spec"]["suspend"] is False
    assert body["spec"]["template"]["spec"] == {
        "nodeSelector": {"zone": "b", "old": None},
        "tolerations": [toleration],
        "schedulingGates": [gate],
    }


def test_resumption_removes_a_placement_that_is_over() -> None:
    body, _ = resumption({"zone": "a"})
    assert body["spec"]["template"]["spec"] == {
        "nodeSelector": {"zone": None},
        "tolerations": None,
        "schedulingGates": None,
    }


def test_resumption_merges_labels_and_annotations() -> None:
    body, _ = resumption({})
    metadata = body["spec"]["template"]["metadata"]
    assert metadata == {"labels": {"own": "1"}, "annotations": {}}


def test_suspension_and_ttl_are_single_fields() -> None:
    job = mpi_job(ALL_SET)
    stop = LauncherJobWrite(LauncherJobAction.SUSPEND, batch_job())
    expire = LauncherJobWrite(LauncherJobAction.SET_TTL, batch_job())
    keep = LauncherJobWrite(LauncherJobAction.REMOVE_TTL, batch_job(ttl_s=5))
    assert manifests.patch(job, stop, {}) == ({"spec": {"suspend": True}}, "")
    assert manifests.patch(job, expire, {}) == ({"spec": {"ttlSecondsAfterFinished": 5}}, "")
    assert manifests.patch(job, keep, {}) == ({"spec": {"ttlSecondsAfterFinished": None}}, "")

"""The labels of pods say their attempt; those of an earlier one are no replicas of the present."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from dlctl.api.job import Job, Replica
from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Children, observe
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT
from tests.builders import NOW, RUNNING, make_job, make_pod, renderer_of, training_job

MASTER, WORKER = Replica("master", 0), Replica("worker", 0)


def wire(policy: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    manifest = training_job("PyTorchJob", Master=1, Worker=2)
    manifest["spec"] |= {"runPolicy": {"failurePolicy": policy or {}}, **spec}
    return manifest


def job(restarts: int, **policy: Any) -> Job:
    status = JobStatus(phase=JobPhase.CREATING, start_time=NOW, job_restarts=restarts)
    return attrs.evolve(make_job(wire(policy)), status=status)


def pod(of: Job, replica: Replica, label: str | None) -> Pod:
    metadata = {"labels": {RESTART_ATTEMPT: label}} if label is not None else {}
    return make_pod(of, replica, state=RUNNING, metadata=metadata)


def plan(of: Job, *pods: Pod) -> Plan:
    return plan_job(of, observe(of, Children(pods), NOW), Desired(), NOW, PlanSettings())


@pytest.mark.parametrize(
    ("label", "belongs"),
    [
        pytest.param("2", True, id="present"),
        pytest.param("1", False, id="earlier"),
        pytest.param("3", True, id="newer than the status that was read"),
        pytest.param(None, True, id="older than the policy"),
        pytest.param("-1", True, id="no number"),
        pytest.param("9" * 5000, True, id="a long number"),
    ],
)
def test_pod_belongs_to_its_attempt(label: str | None, belongs: bool) -> None:
    present = job(2)
    observed = observe(present, Children([pod(present, WORKER, label)]), NOW)
    state = observed.states[WORKER]
    assert state is (ReplicaState.RUNNING if belongs else ReplicaState.MISSING)
    assert len(observed.own_pods) == 1


@pytest.mark.parametrize(
    ("strategy", "created"),
    [
        pytest.param("BlockingRecreate", set(), id="all wait"),
        pytest.param("Recreate", {"master-0", "worker-1"}, id="only that name is taken"),
    ],
)
def test_pod_of_an_earlier_attempt_is_deleted_and_keeps_its_name_until_then(
    strategy: str, created: set[str]
) -> None:
    present = job(2, restartStrategy=strategy)
    late = pod(present, WORKER, "1")
    planned = plan(present, late)
    assert list(planned.deletions(PODS)) == [late]
    assert {str(replica) for replica in planned.pods} == created


def test_job_without_a_policy_has_no_labels() -> None:
    manifest = training_job("PyTorchJob", Worker=2)
    rendered = renderer_of(manifest).pod(WORKER)
    assert RESTART_ATTEMPT not in rendered["metadata"]["labels"]
    assert RESTART_ATTEMPT not in rendered["metadata"]["annotations"]
    names = {each["name"] for each in rendered["spec"]["containers"][0]["env"]}
    assert not names & {"DLCTL_RESTART_ATTEMPT", "PET_RDZV_ID", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"}


def environment(manifest: dict[str, Any]) -> dict[str, str]:
    variables = renderer_of(manifest).pod(WORKER)["spec"]["containers"][0]["env"]
    return {each["name"]: each["value"] for each in variables}


def test_rendezvous_of_a_user_is_that_of_one_attempt() -> None:
    assert environment(wire())["PET_RDZV_ID"] == "linear-0"
    elastic = {"elasticPolicy": {"rdzvId": "mine", "minReplicas": 1, "maxReplicas": 2}}
    assert environment(wire(**elastic))["PET_RDZV_ID"] == "mine-0"


def test_variables_of_the_user_stay() -> None:
    manifest = wire()
    worker = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    given = {"PET_RDZV_ID": "mine", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7"}
    worker["containers"][0]["env"] = [{"name": n, "value": v} for n, v in given.items()]
    found = environment(manifest)
    assert {name: found[name] for name in given} == given


@pytest.mark.parametrize(("grace_s", "timeout"), [(120, "115"), (3, "1"), (None, "25")])
def test_torchrun_leaves_its_workers_time_for_a_checkpoint(
    grace_s: int | None, timeout: str
) -> None:
    manifest = wire()
    worker = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    if grace_s is not None:
        worker["terminationGracePeriodSeconds"] = grace_s
    assert environment(manifest)["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == timeout

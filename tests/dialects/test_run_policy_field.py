"""Reading ``runPolicy``: names in any case, absent limits, and invalid values."""

from typing import Any

import pytest

from dlctl.api.policies.run_policy import CleanPodPolicy, RunPolicy
from dlctl.api.policies.scheduling_policy import SchedulingPolicy
from dlctl.errors import InvalidJobError
from tests.builders import make_job, mxjob


def test_run_policy_is_read_in_any_case() -> None:
    policy = {
        "CleanPodPolicy": "running",
        "ttlsecondsafterfinished": 0,
        "activeDeadlineSeconds": 60,
        "BackoffLimit": 3,
        "suspend": True,
    }
    wanted = RunPolicy(
        CleanPodPolicy.RUNNING,
        ttl_after_finished_s=0,
        active_deadline_s=60,
        backoff_limit=3,
        suspended=True,
    )
    assert make_job(runPolicy=policy).run_policy == wanted


def test_job_without_a_run_policy_has_no_limits() -> None:
    assert make_job().run_policy == RunPolicy(CleanPodPolicy.ALL)


def test_clean_pod_policy_of_the_run_policy_beats_the_older_field() -> None:
    wire = mxjob(cleanupPodPolicy="All", runPolicy={"cleanPodPolicy": "None"})
    assert make_job(wire).run_policy.clean_pod_policy is CleanPodPolicy.NONE


def test_scheduling_policy_is_read() -> None:
    policy = {
        "minAvailable": 3,
        "Queue": "research",
        "minResources": {"cpu": 2, "memory": "1024Mi", "example.com/Gpu": "1"},
        "priorityClass": "high",
        "scheduleTimeoutSeconds": 60,
    }
    amounts = {"cpu": "2", "memory": "1Gi", "example.com/Gpu": "1"}
    read = make_job(runPolicy={"schedulingPolicy": policy}).run_policy.scheduling_policy
    assert read == SchedulingPolicy(3, "research", amounts, "high", 60)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"minAvailable": -1}, "minAvailable: is -1, but must be between 0 and"),
        ({"minAvailable": "2"}, "minAvailable: must be an integer, not '2'"),
        ({"queue": 1}, "queue: must be a string, not 1"),
        ({"minResources": {"cpu": "lots"}}, "minResources.cpu: is 'lots': quantities must match"),
        ({"minResources": {"cpu": True}}, "minResources.cpu: is True: quantities must match"),
        ({"minResources": {"cpu": "1e999999"}}, "minResources.cpu: is '1e999999': quantities must"),
        ({"minResources": {"cpu": "9" * 1300}}, f"minResources.cpu: is '{'9' * 36}...: quantities"),
        ({"minResources": {"c" * 9000: "x"}}, "minResources.ccc"),
        ({"minResources": ["cpu"]}, "minResources: must be an object"),
        ({"scheduleTimeoutSeconds": 1.5}, "scheduleTimeoutSeconds: must be an integer, not 1.5"),
    ],
)
def test_invalid_scheduling_policy_is_rejected(policy: Any, message: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        make_job(runPolicy={"schedulingPolicy": policy})
    assert f"spec.runPolicy.schedulingPolicy.{message}" in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"suspend": "yes"}, "spec.runPolicy.suspend: must be true or false, not 'yes'"),
        ({"backoffLimit": -1}, "spec.runPolicy.backoffLimit: is -1"),
        ({"activeDeadlineSeconds": 0}, "spec.runPolicy.activeDeadlineSeconds: is 0"),
        ({"ttlSecondsAfterFinished": 1.5}, "must be an integer, not 1.5"),
        ([], "spec.runPolicy: must be an object"),
    ],
)
def test_invalid_run_policy_is_rejected(policy: Any, message: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        make_job(runPolicy=policy)
    assert message in str(refused.value)

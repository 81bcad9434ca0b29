"""When the scheduler is made to retry a gang, and which gangs wait."""

import datetime
from typing import Any, Final

import pytest

from dlctl.api.job import Replica
from dlctl.api.meta import ObjectMeta, Resource
from dlctl.api.objects.dependents import GANG_RETRIED_AT, DependentObject
from dlctl.api.objects.pod_groups import (
    COSCHEDULING_POD_GROUPS,
    POD_GROUP_LABEL,
    VOLCANO_POD_GROUPS,
)
from dlctl.api.objects.pods import Pod, PodSchedulingGate, PodSpec
from dlctl.reconcilers.children.gang_retries import GangRetry, gang_retry
from dlctl.reconcilers.observe import Children, observe
from tests.builders import NOW, RUNNING, make_job, make_pod, training_job

JOB: Final = make_job(training_job("PyTorchJob", Worker=2))
MEMBER: Final = {"labels": {POD_GROUP_LABEL: "linear"}}


def ago(seconds: float) -> str:
    return (NOW - datetime.timedelta(seconds=seconds)).isoformat()


def waiting(age_s: float, index: int = 0, **meta: Any) -> Pod:
    """Return a pod of the gang that is not placed, created some seconds ago."""
    metadata = {**MEMBER, "creationTimestamp": ago(age_s), **meta}
    return make_pod(JOB, Replica("worker", index), phase="Pending", metadata=metadata)


def group(retried_at: str = "", **meta: Any) -> DependentObject:
    annotations = {GANG_RETRIED_AT: retried_at} if retried_at else None
    return DependentObject(metadata=ObjectMeta(name="linear", annotations=annotations, **meta))


def retry(
    *pods: Pod, there: DependentObject | None = None, groups: Resource = COSCHEDULING_POD_GROUPS
) -> GangRetry:
    children = Children(pods, dependents={groups: [there or group()]})
    return gang_retry(JOB, observe(JOB, children, NOW), NOW)


@pytest.mark.parametrize(
    ("ages", "retried_at", "requeue_after_s"),
    [
        pytest.param([0], "", 30, id="just created"),
        pytest.param([29, 5], "", 1, id="the oldest pod counts"),
        pytest.param([900], ago(20), 10, id="retried before"),
        pytest.param([10], ago(900), 20, id="retried for pods that are gone"),
    ],
)
def test_gang_is_not_retried_before_the_interval(
    ages: list[float], retried_at: str, requeue_after_s: float
) -> None:
    pods = [waiting(age, index) for index, age in enumerate(ages)]
    assert retry(*pods, there=group(retried_at)) == GangRetry(requeue_after_s=requeue_after_s)


@pytest.mark.parametrize(
    "retried_at",
    ["", ago(30), ago(-3600), "9999-12-31T00:00:00Z", "2026-01-01T11:59:50", "yesterday"],
)
def test_gang_is_retried_after_the_interval(retried_at: str) -> None:
    there = group(retried_at)
    due = retry(waiting(60), there=there)
    assert (due.group, due.requeue_after_s) == (there, 30)
    assert due.patch == {
        "metadata": {"name": "linear", "annotations": {GANG_RETRIED_AT: NOW.isoformat()}}
    }


def changed(pod: Pod, **spec: Any) -> Pod:
    fields = {name: getattr(pod, name) for name in ("metadata", "status")}
    return Pod(**fields, spec=PodSpec(**spec))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(changed(waiting(60), node_name="a"), id="placed"),
        pytest.param(changed(waiting(60), scheduling_gates=(PodSchedulingGate("a"),)), id="gated"),
        pytest.param(waiting(60, deletionTimestamp=ago(1)), id="terminating"),
        pytest.param(waiting(60, labels={}), id="of no gang"),
        pytest.param(
            make_pod(JOB, Replica("worker", 0), phase="Failed", metadata=MEMBER), id="ended"
        ),
    ],
)
def test_gang_without_waiting_pods_is_not_retried(pod: Pod) -> None:
    assert retry(pod) == GangRetry()


def test_gang_without_a_pod_group_of_the_plugin_is_not_retried() -> None:
    assert retry(waiting(60), groups=VOLCANO_POD_GROUPS) == GangRetry()
    terminating = group(deletion_timestamp=NOW)
    assert retry(waiting(60), there=terminating) == GangRetry()
    assert retry(waiting(60), there=group_named("other")) == GangRetry()


def group_named(name: str) -> DependentObject:
    return DependentObject(metadata=ObjectMeta(name=name))


def test_gang_of_running_pods_is_not_retried() -> None:
    pods = [make_pod(JOB, Replica("worker", i), state=RUNNING, metadata=MEMBER) for i in range(2)]
    assert retry(*pods) == GangRetry()

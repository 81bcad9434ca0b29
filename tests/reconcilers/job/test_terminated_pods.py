"""Pods that have terminated are known until a plan includes them, or their job is gone."""

from typing import Any

import pytest

from dlctl.api.meta import UID
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.reconcilers.job.terminated_pods import TerminatedPods
from dlctl.workqueue.queue import WorkQueue
from tests.builders import RUNNING, exited
from tests.reconcilers.handlers.changes import MNIST, OWNED, TFJOBS, decode, job_queues, owned_by

JOB = UID("uid-of-job")


def pod_with(state: Any, **metadata: Any) -> Pod:
    status = {"phase": "Running", "containerStatuses": [{"name": "tensorflow", "state": state}]}
    pod: Pod = decode(Pod, "mnist-worker-0", metadata={**OWNED, **metadata}, status=status)
    return pod


def terminated_pods() -> TerminatedPods:
    return TerminatedPods(job_queues(WorkQueue()))


@pytest.mark.parametrize("code", [0, 1])
def test_terminated_pod_is_known_after_its_deletion(code: int) -> None:
    pods, pod = terminated_pods(), pod_with(exited(code))
    pods.handle(Change(pod_with(RUNNING), pod))
    pods.handle(Change(pod, None))
    assert pods.of(TFJOBS, MNIST, JOB) == {"mnist-worker-0": pod}
    assert not pods.of(TFJOBS, MNIST, UID("of a job of the same name"))


def test_pod_is_forgotten_with_the_plan_that_includes_it() -> None:
    pods, pod, later = terminated_pods(), pod_with(exited(0)), pod_with(exited(0), labels={"a": ""})
    pods.handle(Change(None, pod))
    planned = pods.of(TFJOBS, MNIST, JOB)
    pods.handle(Change(pod, later))
    pods.remove(TFJOBS, MNIST, JOB, planned)
    assert pods.of(TFJOBS, MNIST, JOB) == {"mnist-worker-0": later}
    pods.remove(TFJOBS, MNIST, JOB, {"mnist-worker-0": later})
    assert not pods._by_job


def test_pods_of_another_uid_are_forgotten_with_the_next_plan() -> None:
    pods = terminated_pods()
    pods.handle(Change(None, pod_with(exited(0))))
    pods.remove(TFJOBS, MNIST, UID("of the job that has the name"), {})
    assert not pods._by_job


def test_pods_are_forgotten_with_their_job() -> None:
    pods = terminated_pods()
    pods.handle(Change(None, pod_with(exited(0))))
    pods.forget(TFJOBS, MNIST)
    assert not pods._by_job


def test_the_newest_thousand_pods_of_a_job_are_kept() -> None:
    pods, first = terminated_pods(), pod_with(exited(0), name="first")
    pods.handle(Change(None, first))
    for number in range(999):
        pods.handle(Change(None, pod_with(exited(0), name=f"pod-{number}")))
    pods.handle(Change(first, pod_with(exited(0), name="first", labels={"a": ""})))
    pods.handle(Change(None, pod_with(exited(0), name="last")))
    names = list(pods.of(TFJOBS, MNIST, JOB))
    assert (len(names), names[0], names[-2:]) == (1000, "pod-1", ["first", "last"])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Change(None, pod_with(RUNNING)), id="running"),
        pytest.param(
            Change(None, pod_with(exited(0), deletionTimestamp="2026-01-01T00:00:00Z")),
            id="ended after the request to delete it",
        ),
        pytest.param(
            Change(None, pod_with(exited(0), **owned_by("pi", api_version="batch/v1", kind="Job"))),
            id="of another kind",
        ),
    ],
)
def test_other_pods_are_not_kept(change: Change[Pod]) -> None:
    pods = terminated_pods()
    pods.handle(change)
    assert not pods._by_job

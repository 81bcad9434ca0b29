"""Changes of leadership do not affect jobs."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from typing import Any, Final

import pytest

from dlctl.api.json_types import JSON
from e2e import install, leadership
from e2e.kubectl import Kubectl
from e2e.suite import jobs
from e2e.suite.handovers import LEASE_S, LeaseHandovers
from e2e.testbed import ClusterTestbed
from e2e.watching import ChangeRecord, watching

_ACCOUNT: Final = f"system:serviceaccount:{install.NAMESPACE}:dlctl"
_TAKEOVER_S: Final = LEASE_S + 2
_GRACEFUL_S: Final = 3.0
# Deletion timestamps have whole seconds.
_RESOLUTION_S: Final = 1.0
_KILLS: Final = 3

_HANDOVERS: Final = 20
# Every fourth of them is by force.
_FORCE: Final = 4
_JOBS: Final = 50
_TYPES: Final = ("SCHEDULER", "WORKER")
# The number of jobs submitted while there may be no leader.
_LATE: Final = 10

_JOBS_S: Final = 180.0

Measured = Callable[[str, object], None]


@pytest.fixture
def handovers(controller: Kubectl) -> Iterator[LeaseHandovers]:
    one = ("--field-selector", "metadata.name=dlctl")
    with (
        watching(controller, "leases", *one) as lease,
        watching(controller, "pods", "--selector", install.SELECTOR) as pods,
    ):
        yield LeaseHandovers(controller, lease, pods)
    install.rolled_out(controller)


def test_standby_takes_over_when_the_leader_is_killed(
    kubectl: Kubectl, testbed: ClusterTestbed, handovers: LeaseHandovers, record_property: Measured
) -> None:
    with watching(kubectl, "pods") as pods:
        jobs.start_until_released(kubectl, SCHEDULER=1, WORKER=2)
        took_s = [handovers.kill(testbed) for _ in range(_KILLS)]
        record_property("seconds from kill -9 to the next leader", rounded(took_s))
        assert max(took_s) <= _TAKEOVER_S
        jobs.release(kubectl)
        assert_unnoticed(pods, jobs.status(kubectl, jobs.WAITING))


def test_rollout_hands_over_within_seconds(
    kubectl: Kubectl, handovers: LeaseHandovers, record_property: Measured
) -> None:
    with watching(kubectl, "pods") as pods:
        jobs.start_until_released(kubectl, SCHEDULER=1, WORKER=2)
        before = handovers.settled()
        handovers.controller("rollout", "restart", "deployment/dlctl")
        install.rolled_out(handovers.controller)
        handovers.succeeded(before)
        vacant_s = leadership.vacant_s(handovers.terms())
        record_property("seconds without a leader in a rollout", rounded(vacant_s))
        stopped_s = since_told_to_stop_s(handovers)
        record_property(
            "seconds from SIGTERM (rounded down) to the next leader", rounded(stopped_s)
        )
        assert vacant_s, "the leader was replaced without a handover"
        assert max(vacant_s) <= _GRACEFUL_S
        assert max(stopped_s) <= _GRACEFUL_S + _RESOLUTION_S
        jobs.release(kubectl)
        assert_unnoticed(pods, jobs.status(kubectl, jobs.WAITING))


@pytest.mark.timeout(900)
def test_twenty_handovers_create_no_pod_twice_and_lose_no_job(
    kubectl: Kubectl, testbed: ClusterTestbed, handovers: LeaseHandovers, record_property: Measured
) -> None:
    pretend = [pretended_job(f"job-{index}") for index in range(_JOBS)]
    late = pretend[-_LATE:]
    disturbed: set[str] = set()
    killed_s: list[float] = []
    deleted_s: list[float] = []
    with watching(kubectl, "pods") as pods:
        kubectl.apply(*pretend[:-_LATE])
        until_all_run(kubectl, pods, _JOBS - _LATE)
        for turn in range(_HANDOVERS):
            last = turn == _HANDOVERS - 1
            if last:
                until_all_run(kubectl, pods, _JOBS)
                complete(kubectl, pods)
            else:
                disturbed |= disturb(kubectl, pods, disturbed)
            if late:
                kubectl.apply(late.pop())
            if turn % _FORCE == _FORCE - 1:
                killed_s.append(handovers.kill(testbed))
            else:
                deleted_s.append(handovers.delete())
        until_all_done(kubectl)
        assert_made_once(pods, disturbed)
        expected = _JOBS * len(_TYPES) + len(disturbed) + len(deleted_before_running(pods))
    record_property("seconds from kill -9 to the next leader", rounded(killed_s))
    record_property("seconds from a pod's deletion to the next leader", rounded(deleted_s))
    vacant_s = leadership.vacant_s(handovers.terms())
    record_property("seconds without a leader in between", rounded(vacant_s))
    assert max(killed_s) <= _TAKEOVER_S
    assert max(vacant_s) <= _GRACEFUL_S
    assert len(handovers.terms()) == _HANDOVERS + 1
    audited = assert_only_leaders_wrote(testbed, handovers)
    creations = audited[f"create {kubectl.namespace}/pods"]
    record_property("pods made, and writes of leaders", (creations, sum(audited.values())))
    assert creations == expected


def assert_unnoticed(pods: ChangeRecord, status: JSON) -> None:
    made = uids_by_name(pods)
    assert [len(uids) for uids in made.values()] == [1, 1, 1], made
    assert "restarts" not in status
    statuses = [
        container
        for change in pods.changes()
        for container in change.object["status"].get("containerStatuses", ())
    ]
    assert {container["restartCount"] for container in statuses} == {0}


def since_told_to_stop_s(handovers: LeaseHandovers) -> list[float]:
    told = handovers.sigterm_times()
    terms = handovers.terms()
    return [
        (after.since - told[before.pod]).total_seconds()
        for before, after in itertools.pairwise(terms)
    ]


def pretended_job(name: str) -> JSON:
    """Return a job for simulated nodes."""
    taint = {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}
    place = {"nodeSelector": {"type": "kwok"}, "tolerations": [taint]}
    entries = [jobs.replicas(type_, 1, ["true"], **place) for type_ in _TYPES]
    return jobs.mxjob(name, *entries, jobMode="dist")


def until_all_run(kubectl: Kubectl, pods: ChangeRecord, count: int) -> None:
    def probe() -> bool:
        there = pods.present()
        return len(there) == count * len(_TYPES) and all(is_running(pod) for pod in there)

    kubectl.until(probe, within_s=_JOBS_S, what=f"{count} jobs to run")


def disturb(kubectl: Kubectl, pods: ChangeRecord, before: Set[str]) -> set[str]:
    """Delete one pod and let another one fail; return their names."""
    names = [pod["metadata"]["name"] for pod in pods.present() if is_running(pod)]
    deleted, failed = [name for name in names if name not in before][:: len(names) // 3][:2]
    kubectl("delete", "pod", deleted, "--wait=false")
    end(kubectl, [failed], exit_code=137)
    return {deleted, failed}


def complete(kubectl: Kubectl, pods: ChangeRecord) -> None:
    """Let the chief of each job succeed."""
    names = [pod["metadata"]["name"] for pod in pods.present()]
    end(kubectl, [name for name in names if "-worker-" in name], exit_code=0)


def end(kubectl: Kubectl, names: list[str], *, exit_code: int) -> None:
    terminated = {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed"}
    container = {
        "name": "mxnet",
        "image": jobs.IMAGE,
        "imageID": jobs.IMAGE,
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }
    status = {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [container]}
    patch = json.dumps({"status": status})
    kubectl("patch", "pods", *names, "--subresource=status", "--type=merge", "--patch", patch)


def until_all_done(kubectl: Kubectl) -> None:
    def probe() -> bool:
        found: list[Any] = [job.get("status", {}) for job in kubectl.items("mxjobs.kubeflow.org")]
        done = [s for s in found if (s.get("phase"), s.get("state")) == ("Done", "Succeeded")]
        return len(done) == len(found) == _JOBS

    kubectl.until(probe, within_s=_JOBS_S, what=f"{_JOBS} jobs to be done")


def assert_made_once(pods: ChangeRecord, disturbed: Set[str]) -> None:
    made = uids_by_name(pods)
    assert len(made) == _JOBS * len(_TYPES)
    made = {name: uids - deleted_before_running(pods) for name, uids in made.items()}
    wrong = {name: u for name, u in made.items() if len(u) != 1 + (name in disturbed)}
    assert not wrong


def assert_only_leaders_wrote(testbed: ClusterTestbed, handovers: LeaseHandovers) -> dict[str, int]:
    """Return the number of writes by kind since the first of the recorded terms."""
    terms = handovers.terms()
    counts: dict[str, int] = defaultdict(int)
    strays = []
    for write in leadership.writes(testbed.audit(), _ACCOUNT):
        if write.began < terms[0].since:
            continue
        if not any(write.lies_in(term) for term in terms):
            strays.append(write)
        counts[f"{write.verb} {write.resource}"] += 1
    assert not strays, terms
    return counts


def deleted_before_running(pods: ChangeRecord) -> set[str]:
    """Return the replacements that were deleted before they ran.

    A late kwok deletes by name, also pods that have long been replaced.
    """
    gone = {change.uid for change in pods.changes() if change.deleted}
    ran = {change.uid for change in pods.changes() if change.object["status"]["phase"] != "Pending"}
    return gone - ran


def uids_by_name(pods: ChangeRecord) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for change in pods.changes():
        found[change.name].add(change.uid)
    return found


def is_running(pod: JSON) -> bool:
    gone = "deletionTimestamp" in pod["metadata"]
    return pod["status"].get("phase") == "Running" and not gone


def rounded(seconds: list[float]) -> list[float]:
    return [round(each, 2) for each in seconds]

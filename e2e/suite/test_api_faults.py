"""A killed, compacted or unreachable API server: controllers recover by themselves."""

import datetime
import re
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from e2e import controller_metrics, install
from e2e.kubectl import Kubectl, KubectlError
from e2e.suite import jobs
from e2e.suite.handovers import LEASE_S
from e2e.testbed import ClusterTestbed

_AWAY_S: Final = 30.0
_BACK_S: Final = 60.0
_JOB: Final = "mxjobs.kubeflow.org"

Measured = Callable[[str, object], None]


@pytest.fixture(autouse=True)
def healthy(
    cluster: Kubectl,
    controller: Kubectl,
    testbed: ClusterTestbed,
    has_failed: Callable[[], bool],
) -> Iterator[None]:
    """Both controllers are ready before and after."""
    install.rolled_out(cluster)
    controller.until(lambda: install.leader(cluster), within_s=_BACK_S, what="a leader")
    yield
    if has_failed():
        testbed.revive_api_server()
    cluster.until(cluster.is_ready, within_s=_BACK_S, what="an API server")
    install.rolled_out(cluster)


def test_controllers_survive_a_killed_api_server(
    kubectl: Kubectl, cluster: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    before = running_job(kubectl, "waiting")
    testbed.processes.kill("kube-apiserver")
    time.sleep(_AWAY_S)
    back = now()
    testbed.processes.restart("kube-apiserver")
    cluster.until(cluster.is_ready, within_s=_BACK_S, what="an API server")
    cluster.until(lambda: acquired(cluster) > back, within_s=_BACK_S, what="a new leader")
    record_property("seconds from the API server's start to a leader", since(back, cluster))
    assert pods(kubectl) == before
    end(kubectl, "waiting")
    kubectl.apply(short_job("after"))
    assert jobs.ended(kubectl, "after")["state"] == "Succeeded"


def test_standby_relists_after_a_missed_compaction_and_can_lead(
    kubectl: Kubectl, cluster: Kubectl, testbed: ClusterTestbed
) -> None:
    before = {**running_job(kubectl, "kept"), **running_job(kubectl, "removed")}
    standby = next(p for p in install.controllers(cluster) if name(p) != install.leader(cluster))
    lists = metric(cluster, standby, "reflector_lists_total", _JOB)
    with testbed.partitioned(address(standby)):
        kubectl("delete", _JOB, "removed")
        jobs.start_until_released(kubectl, "made")
        testbed.compact()
        # The API server's watch cache forgets too.
        testbed.processes.kill("kube-apiserver")
        testbed.processes.restart("kube-apiserver")
        cluster.until(cluster.is_ready, within_s=_BACK_S, what="an API server")
        cluster("create", "namespace", f"{kubectl.namespace}-later")
        testbed.compact()
        jobs.running(kubectl, "made")
    cluster("delete", "namespace", f"{kubectl.namespace}-later", "--wait=false")
    cluster.until(
        lambda: metric(cluster, standby, "reflector_lists_total", _JOB) > lists,
        within_s=_BACK_S,
        what="the standby to list again",
    )
    made = {n: uid for n, uid in pods(kubectl).items() if n.startswith("made-")}
    assert restarts(cluster, standby) == 0, "it came back by a restart, and not by itself"
    leader = install.leader(cluster)
    cluster.within(install.NAMESPACE)("delete", "pod", leader, "--wait=false")
    cluster.until(
        lambda: install.leader(cluster) not in ("", leader), within_s=_BACK_S, what="the standby"
    )
    end(kubectl, "kept")
    end(kubectl, "made")
    # The garbage collector may not have come to those of the removed job yet.
    there = pods(kubectl)
    assert there == {n: uid for n, uid in {**before, **made}.items() if n in there}


def test_partitioned_leader_is_replaced(
    kubectl: Kubectl, cluster: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    before = running_job(kubectl, "waiting")
    leader = next(p for p in install.controllers(cluster) if name(p) == install.leader(cluster))
    renewed = lease_time(cluster, "renewTime")
    with testbed.partitioned(address(leader)):
        cluster.until(
            lambda: install.leader(cluster) not in ("", name(leader)),
            within_s=_BACK_S,
            what="the standby to lead",
        )
        took_s = (acquired(cluster) - max(renewed, last_renewal(testbed, leader))).total_seconds()
        record_property("seconds from the last renewal to the next leader", round(took_s, 2))
        assert LEASE_S <= took_s <= LEASE_S + 2
        cluster.until(
            lambda: restarts(cluster, leader) > 0, within_s=_BACK_S, what="the old leader to end"
        )
        ended_s = (ended_at(cluster, leader) - acquired(cluster)).total_seconds()
        record_property(
            "seconds from the old leader's end to the new one's start", round(-ended_s, 1)
        )
        assert ended_s <= 0, "both were alive and could have written"
        kubectl.apply(short_job("meanwhile"))
        assert jobs.ended(kubectl, "meanwhile")["state"] == "Succeeded"
    assert {n: uid for n, uid in pods(kubectl).items() if n in before} == before
    end(kubectl, "waiting")


def test_all_partitioned_controllers_recover(
    kubectl: Kubectl, cluster: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    before = running_job(kubectl, "waiting")
    with testbed.partitioned(*(address(pod) for pod in install.controllers(cluster))):
        kubectl.apply(short_job("submitted"))
        time.sleep(_AWAY_S)
        assert not jobs.status(kubectl, "submitted")
        healed = now()
    cluster.until(lambda: acquired(cluster) > healed, within_s=_BACK_S, what="a leader")
    record_property("seconds from healing to a leader", since(healed, cluster))
    assert jobs.ended(kubectl, "submitted")["state"] == "Succeeded"
    assert {n: uid for n, uid in pods(kubectl).items() if n in before} == before
    end(kubectl, "waiting")


def short_job(title: str) -> JSON:
    return jobs.mxjob(title, jobs.replicas("WORKER", 1, ["true"]))


def running_job(kubectl: Kubectl, title: str) -> dict[str, str]:
    """Start a waiting job; return its pods and their UIDs."""
    jobs.start_until_released(kubectl, title)
    return {n: uid for n, uid in pods(kubectl).items() if n.startswith(f"{title}-")}


def end(kubectl: Kubectl, title: str) -> None:
    assert "restarts" not in jobs.release(kubectl, title)


def pods(kubectl: Kubectl) -> dict[str, str]:
    return {name(pod): pod["metadata"]["uid"] for pod in kubectl.items("pods")}


def acquired(cluster: Kubectl) -> datetime.datetime:
    return lease_time(cluster, "acquireTime")


def lease_time(cluster: Kubectl, field: str) -> datetime.datetime:
    lease = cluster.within(install.NAMESPACE).get("lease", "dlctl")
    assert lease
    return datetime.datetime.fromisoformat(lease["spec"][field])


def last_renewal(testbed: ClusterTestbed, leader: JSON) -> datetime.datetime:
    """Return when the API server last accepted a renewal by a controller."""
    key = "authentication.kubernetes.io/pod-name"
    times = (
        request["requestReceivedTimestamp"]
        for request in testbed.audit()
        if request["verb"] in ("update", "patch")
        and request.get("objectRef", {}).get("resource") == "leases"
        and request["user"].get("extra", {}).get(key) == [name(leader)]
        and request.get("responseStatus", {}).get("code") == 200
    )
    return datetime.datetime.fromisoformat(max(times))


def ended_at(cluster: Kubectl, pod: JSON) -> datetime.datetime:
    last = container(cluster, pod)["lastState"]["terminated"]
    return datetime.datetime.fromisoformat(last["finishedAt"])


def restarts(cluster: Kubectl, pod: JSON) -> int:
    count: int = container(cluster, pod)["restartCount"]
    before = pod["status"]["containerStatuses"][0]["restartCount"]
    return count - int(before)


def container(cluster: Kubectl, pod: JSON) -> JSON:
    found = cluster.within(install.NAMESPACE).get("pod", name(pod))
    assert found
    status: JSON = found["status"]["containerStatuses"][0]
    return status


def metric(cluster: Kubectl, pod: JSON, series: str, resource: str) -> float:
    try:
        text = controller_metrics.ask(cluster.within(install.NAMESPACE), name(pod), "metrics")
    except KubectlError:
        return 0.0
    found = re.search(rf'^{series}{{name="{re.escape(resource)}"}} (\S+)$', text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def since(moment: datetime.datetime, cluster: Kubectl) -> float:
    return round((acquired(cluster) - moment).total_seconds(), 2)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def name(pod: JSON) -> str:
    found: str = pod["metadata"]["name"]
    return found


def address(pod: JSON) -> str:
    found: str = pod["status"]["podIP"]
    return found

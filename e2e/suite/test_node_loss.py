"""A lost node: with force deletion enabled, its job continues elsewhere."""

import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from e2e import install
from e2e.cluster.control_plane import NODE_LOST_S
from e2e.kubectl import Kubectl
from e2e.suite import jobs
from e2e.testbed import ClusterTestbed

_NAME: Final = "survivor"
# Toleration of an unreachable node, and grace period of the job's pods.
_TOLERATION_S: Final = 3
_GRACE_S: Final = 2
_FORCE_AFTER_S: Final = 5.0
# Until the node is tainted, the pod evicted, and a replacement scheduled and started.
_SLACK_S: Final = 45.0

Measured = Callable[[str, object], None]


@pytest.fixture(autouse=True)
def two_nodes(cluster: Kubectl) -> Iterator[None]:
    """Both real nodes are ready before and after."""
    yield
    cluster("wait", "nodes", "--all", "--for=condition=Ready", "--timeout=90s", within_s=95)


@pytest.fixture
def forcing(cluster: Kubectl, controller: Kubectl) -> Iterator[None]:
    """Controllers with force deletion enabled."""
    setting = "DLCTL_FORCE_DELETE_AFTER"
    controller("set", "env", "deployment/dlctl", f"{setting}={_FORCE_AFTER_S:g}")
    install.rolled_out(cluster)
    yield
    controller("set", "env", "deployment/dlctl", f"{setting}-")
    install.rolled_out(cluster)


def test_pod_on_a_lost_node_is_replaced_only_with_force_deletion(
    kubectl: Kubectl, testbed: ClusterTestbed
) -> None:
    lost = running_pod(kubectl)
    with testbed.powered_off(lost["spec"]["nodeName"]):
        kubectl.until(
            lambda: "deletionTimestamp" in worker(kubectl)["metadata"],
            within_s=NODE_LOST_S + _TOLERATION_S + _SLACK_S,
            what="the eviction of the pod",
        )
        time.sleep(_GRACE_S + 2 * _FORCE_AFTER_S)
        assert worker(kubectl)["metadata"]["uid"] == lost["metadata"]["uid"]
    # The node is back, and terminates the evicted pods.
    until_runs_again(kubectl, lost, within_s=2 * _SLACK_S)
    end(kubectl)


@pytest.mark.usefixtures("forcing")
def test_job_continues_elsewhere_after_the_leaders_node_is_lost(
    kubectl: Kubectl, cluster: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    leader = cluster.until(lambda: leading(cluster), within_s=60, what="a leader")
    assert len({pod["spec"]["nodeName"] for pod in install.controllers(cluster)}) == 2, "no standby"
    lost = running_pod(kubectl, node=leader["spec"]["nodeName"])
    began = time.monotonic()
    with testbed.powered_off(lost["spec"]["nodeName"]):
        replacement = until_runs_again(
            kubectl,
            lost,
            within_s=NODE_LOST_S + _TOLERATION_S + _GRACE_S + _FORCE_AFTER_S + _SLACK_S,
        )
        took_s = time.monotonic() - began
        record_property("seconds from the death of a node to the replica's return", round(took_s))
        assert replacement["spec"]["nodeName"] != lost["spec"]["nodeName"]
        end(kubectl)
    told = jobs.events(kubectl, _NAME, "PodForceDeleted")
    assert len(told) == 1
    assert lost["metadata"]["name"] in told[0]
    assert lost["spec"]["nodeName"] in told[0]


def running_pod(kubectl: Kubectl, node: str = "") -> JSON:
    """Start a job of one replica that prefers a node, and return its pod once it runs."""
    leave = [
        {"key": f"node.kubernetes.io/{why}", "effect": "NoExecute", "tolerationSeconds": after_s}
        for why, after_s in (("unreachable", _TOLERATION_S), ("not-ready", _TOLERATION_S))
    ]
    expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    preferred = [{"weight": 100, "preference": {"matchExpressions": expressions}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    pod = {
        "tolerations": [{"operator": "Exists", **each} for each in leave],
        "terminationGracePeriodSeconds": _GRACE_S,
        **({"affinity": affinity} if node else {}),
    }
    jobs.start_until_released(kubectl, _NAME, pod)
    found = worker(kubectl)
    assert node in ("", found["spec"]["nodeName"])
    return found


def until_runs_again(kubectl: Kubectl, lost: JSON, *, within_s: float) -> JSON:
    def probe() -> JSON | None:
        pod = worker(kubectl)
        fresh = pod and pod["metadata"]["uid"] != lost["metadata"]["uid"]
        return pod if fresh and pod["status"].get("phase") == "Running" else None

    return kubectl.until(probe, within_s=within_s, what="the replica to run again")


def worker(kubectl: Kubectl) -> JSON:
    return next(iter(kubectl.items("pods")), {})


def leading(cluster: Kubectl) -> JSON | None:
    name = install.leader(cluster)
    pods = install.controllers(cluster)
    return next((pod for pod in pods if pod["metadata"]["name"] == name), None)


def end(kubectl: Kubectl) -> None:
    status = jobs.release(kubectl, _NAME)
    # Not caused by the program: it costs no failure.
    assert "failures" not in status.get("restarts", {}).get("WORKER-0", {})

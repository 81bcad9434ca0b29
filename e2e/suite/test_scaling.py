"""Elastic jobs on real nodes: workers are added, removed, lost and evacuated.

Times are those of the API server's audit log, and of the launcher's output.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from e2e import install
from e2e.kubectl import Kubectl
from e2e.suite import elastic, jobs, scaling
from e2e.suite.elastic import JOBS, NAME, SCALERS
from e2e.suite.handovers import LEASE_S
from e2e.testbed import ClusterTestbed
from e2e.watching import watching

_SUSPENDED: Final = "job-supervisor.kube-ai.io/job-suspended"
_GONE_S: Final = 2.0
_REPLACED_S: Final = 1.0
_STATUS_WRITES: Final = 12
_DELAY_S: Final = 0.2
# The time without any delay, on a busy machine.
_MAKING_S: Final = 1.0
_SCRIPT_S: Final = 6
_DELETION_TAINT: Final = "ToBeDeletedByClusterAutoscaler"

Measured = Callable[[str, object], None]


def test_job_has_et_operators_conditions_with_few_writes(
    kubectl: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    scaling.start(kubectl, scaling.job())
    status = jobs.status(kubectl, NAME, JOBS)
    stages = ["Created", "WorkersCreated", "WorkersReady", "LauncherCreated", "Running"]
    assert scaling.condition_types(status) == stages

    status = scaling.scaled(kubectl, "ScaleIn", "one-less", toDelete={"count": 1})
    stages = ["Created", "Scaling", "ScriptExecuted", "ScaleSucceeded"]
    assert scaling.condition_types(status) == stages
    assert status["toDeletePods"] == scaling.names([1])
    assert elastic.workers(kubectl) == scaling.names([0])

    status = scaling.scaled(kubectl, "ScaleOut", "two-more", toAdd={"count": 2})
    assert status["addPods"] == scaling.names([1, 2])
    assert elastic.workers(kubectl) == scaling.names([0, 1, 2])
    scaling.until_listed(kubectl, [0, 1, 2])
    scaling.end(kubectl)

    asked, *_ = scaling.times(testbed, kubectl, "create", "scaleouts")
    told = scaling.times(testbed, kubectl, "patch", "scaleouts/status")
    record_property("seconds from ScaleOut to ScaleSucceeded", round(told[-1] - asked, 2))
    writes = len(scaling.times(testbed, kubectl, "patch", "trainingjobs/status"))
    record_property("status writes of a job that is scaled in and out", writes)
    assert writes <= _STATUS_WRITES


def test_named_workers_are_deleted_once_the_launcher_disconnects(
    kubectl: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    scaling.start(kubectl, scaling.job(replicas=3))
    elastic.scale(kubectl, "ScaleIn", "typo", toDelete={"podNames": scaling.names([0, 7])})
    elastic.until_phase(kubectl, SCALERS["ScaleIn"], "typo", "ScaleFailed", within_s=30)
    failed = jobs.status(kubectl, "typo", SCALERS["ScaleIn"])
    assert scaling.names([7])[0] in failed["conditions"][-1]["message"]
    assert elastic.workers(kubectl) == scaling.names([0, 1, 2])

    (middle,) = scaling.names([1])
    scaling.scaled(kubectl, "ScaleIn", "middle", toDelete={"podNames": [middle]})
    assert elastic.workers(kubectl) == scaling.names([0, 2])
    ((left, whom),) = scaling.said(kubectl, "left")
    assert whom == [middle]
    ordered, *_, gone = scaling.times(testbed, kubectl, "delete", "pods", middle)
    assert ordered > left
    record_property("seconds from disconnect to gone", round(gone - left, 2))
    assert gone - left <= _GONE_S


def test_kubectl_scale_and_suspension_keep_the_desired_workers(
    kubectl: Kubectl,
) -> None:
    scaling.start(kubectl, scaling.job(replicas=1, maxReplicas=3))
    kubectl("scale", f"{JOBS}/{NAME}", "--replicas=3")
    scaling.until_listed(kubectl, [0, 1, 2])
    kubectl("annotate", JOBS, NAME, f"{_SUSPENDED}=true")
    kubectl.until(lambda: not kubectl.items("pods"), within_s=60, what="the end of all pods")
    assert elastic.phase(kubectl, JOBS, NAME) == "Suspended"
    kubectl("annotate", JOBS, NAME, f"{_SUSPENDED}-")
    scaling.until_listed(kubectl, [0, 1, 2])
    scaling.end(kubectl)


def test_failed_worker_is_replaced_at_once_under_another_name(
    kubectl: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    scaling.start(kubectl, scaling.job(restartPolicy="Always"))
    made = len(scaling.times(testbed, kubectl, "create", "pods"))
    (lost,) = scaling.names([0])
    kubectl("delete", "pod", lost, "--grace-period=0", "--force")
    scaling.until_listed(kubectl, [1, 2])
    (deleted, *_) = scaling.times(testbed, kubectl, "delete", "pods", lost)
    (replaced,) = scaling.times(testbed, kubectl, "create", "pods")[made:]
    record_property("seconds from a lost worker to its replacement", round(replaced - deleted, 2))
    assert replaced - deleted <= _REPLACED_S
    assert elastic.workers(kubectl) == scaling.names([1, 2])


def test_workers_are_evacuated_from_a_cordoned_node(
    kubectl: Kubectl, testbed: ClusterTestbed
) -> None:
    going, staying = (node["metadata"]["name"] for node in kubectl.items("nodes", "type!=kwok")[:2])
    launcher = {"nodeSelector": {"kubernetes.io/hostname": staying}}
    scaling.start(kubectl, scaling.job(launcher=launcher, pod=preferring(going)))
    assert nodes(kubectl) == dict.fromkeys(scaling.names([0, 1]), going)
    with tainted(kubectl, going):
        # Workers that are not reachable yet join later.
        scaling.until_listed(kubectl, [2, 3])
        kubectl.until(
            lambda: nodes(kubectl) == dict.fromkeys(scaling.names([2, 3]), staying),
            within_s=60,
            what="no workers on the node that goes",
        )
    assert elastic.phase(kubectl, JOBS, NAME) == "Running"
    scaling.end(kubectl)


def test_scaler_script_of_one_job_delays_no_other(
    kubectl: Kubectl, testbed: ClusterTestbed, record_property: Measured
) -> None:
    scaling.start(kubectl, scaling.job())
    env = [{"name": "WAIT_S", "value": str(_SCRIPT_S)}]
    elastic.scale(kubectl, "ScaleIn", "slow", toDelete={"count": 1}, script=scaling.SCRIPT, env=env)
    elastic.until_phase(kubectl, SCALERS["ScaleIn"], "slow", "Scaling", within_s=30)
    kubectl.apply(scaling.job("other"))
    kubectl.until(
        lambda: kubectl.get("pod", "other-worker-1"), within_s=30, what="another job's worker"
    )
    assert elastic.phase(kubectl, SCALERS["ScaleIn"], "slow") == "Scaling"
    (_, asked) = scaling.times(testbed, kubectl, "create", JOBS.partition(".")[0])
    made = [at for at in scaling.times(testbed, kubectl, "create", "pods") if at > asked]
    record_property("seconds from another job to its first pod", round(made[0] - asked, 2))
    assert made[0] - asked <= _MAKING_S + _DELAY_S
    elastic.until_phase(kubectl, SCALERS["ScaleIn"], "slow", "ScaleSucceeded", within_s=60)
    status = jobs.status(kubectl, "slow", SCALERS["ScaleIn"])
    assert "ScriptExecuted" in scaling.condition_types(status)


def test_scale_out_continues_after_the_leader_is_killed(
    kubectl: Kubectl, controller: Kubectl, testbed: ClusterTestbed
) -> None:
    scaling.start(kubectl, scaling.job())
    with watching(kubectl, "pods", "--selector", elastic.WORKERS) as pods:
        env = [{"name": "WAIT_S", "value": "3"}]
        elastic.scale(
            kubectl, "ScaleOut", "more", toAdd={"count": 2}, script=scaling.SCRIPT, env=env
        )
        elastic.until_phase(kubectl, SCALERS["ScaleOut"], "more", "Scaling", within_s=30)
        leader = controller.get("pod", install.leader(controller))
        assert leader
        testbed.kill_pod(leader["metadata"]["uid"])
        elastic.until_phase(
            kubectl, SCALERS["ScaleOut"], "more", "ScaleSucceeded", within_s=LEASE_S + 60
        )
        scaling.until_listed(kubectl, [0, 1, 2, 3])
        made = {change.uid for change in pods.changes()}
        assert len(made) == len(pods.present()) == 4
    install.rolled_out(controller)


def preferring(node: str) -> dict[str, Any]:
    expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    preferred = [{"weight": 100, "preference": {"matchExpressions": expressions}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"affinity": affinity}


def nodes(kubectl: Kubectl) -> dict[str, str]:
    """Return the nodes of the workers by pod name."""
    pods = kubectl.items("pods", elastic.WORKERS)
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


@contextmanager
def tainted(kubectl: Kubectl, node: str) -> Iterator[None]:
    """Taint a node as cluster-autoscaler does before its removal."""
    kubectl("taint", "node", node, f"{_DELETION_TAINT}={int(time.time())}:NoSchedule")
    try:
        yield
    finally:
        kubectl("taint", "node", node, f"{_DELETION_TAINT}:NoSchedule-")

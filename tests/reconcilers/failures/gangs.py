"""Replicas of failed attempts, with the ends of their pods."""

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.api.job import Job, Replica
from dlctl.api.json_types import JSON
from dlctl.api.objects.node_signals import Signal
from dlctl.api.status.verdict import Verdict
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.first_cause import first_cause
from dlctl.reconcilers.nodes.node_states import NodeFault, NodeState
from dlctl.reconcilers.termination import termination
from tests.builders import NOW, make_job, make_pod, training_job

MX_JOB = make_job(workers=8)
TORCH_JOB = make_job(training_job("PyTorchJob", Master=1, Worker=7))
JAX_JOB = make_job(training_job("JAXJob", Worker=4))
MPI_JOB = make_job(training_job("MPIJob", Launcher=1, Worker=4))


def ended(
    code: int, message: str = "", *, reason: str = "Error", after_s: float = 0
) -> dict[str, Any]:
    """Return the state of a container that exited."""
    time = NOW - datetime.timedelta(minutes=5) + datetime.timedelta(seconds=after_s)
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": (time - datetime.timedelta(hours=1)).isoformat(),
            "finishedAt": time.isoformat(),
        }
    }


def disrupted(reason: str, message: str = "") -> Mapping[str, Any]:
    """Return the fields of a pod's status with the condition DisruptionTarget."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOW.isoformat(),
    }
    return {"conditions": [condition]}


def failed_replica(
    name: str,
    state: Mapping[str, Any] | None = None,
    *,
    job: Job = TORCH_JOB,
    log: str = "",
    node: str = "",
    faulty_node: NodeState | None = None,
    **status: Any,
) -> FailedReplica:
    """Return the failed replica of this name; ``status`` are fields of its pod's."""
    type_, _, index = name.rpartition("-")
    replica = Replica(type_, int(index))
    spec = job.replica_spec(type_)
    assert spec is not None
    pod = make_pod(
        job, replica, state=state, restart_policy="Never", **{"phase": "Failed", **status}
    )
    if node and pod.spec:
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    end = termination(pod, spec.container, retry_policy=spec.retry_policy, now=NOW)
    return FailedReplica(replica, pod, end, log, faulty_node)


def unhealthy_node(fault: str) -> NodeState:
    return NodeState("node", fault=fault, fault_kind=NodeFault.UNHEALTHY)


def down_node(announced: str) -> NodeState:
    """Return a node that does not answer any more after it has announced that it goes."""
    signal = Signal(announced, f"has the taint {announced}")
    return NodeState("node", signal, None, "is not ready", NodeFault.DOWN)


def verdict_of(*replicas: FailedReplica, job: Job = TORCH_JOB) -> Verdict:
    return first_cause(job, replicas, NOW)


def said(message: str, state: JSON) -> JSON:
    state["state"]["terminated"]["message"] = message
    return state

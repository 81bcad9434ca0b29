"""Jobs and their pods for the tests of the Job controller; valid by default."""

import datetime
from typing import Any

import msgspec

from dlctl.clock import timestamp
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.node.api_types import NodePod

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
FINALIZER = "batch.kubernetes.io/job-tracking"


def ago(seconds: float) -> str:
    return timestamp(NOW - datetime.timedelta(seconds=seconds))


def make_job(
    *,
    restart: str = "Never",
    status: dict[str, Any] | None = None,
    deleted: bool = False,
    **spec: Any,
) -> ControlledBatchJob:
    """Return a job of one pod, as the server has it; one that has started."""
    body = {
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": "uid-of-a",
            "deletionTimestamp": ago(0) if deleted else None,
        },
        "spec": {"completions": 1, "template": {"spec": {"restartPolicy": restart}}, **spec},
        "status": {"startTime": ago(60)} | (status or {}),
    }
    return msgspec.convert(body, ControlledBatchJob)


def make_pod(
    name: str = "p",
    phase: str = "Running",
    *,
    tracked: bool = True,
    terminating: bool = False,
    ended: float | None = None,
    restarts: int = 0,
    created: float = 100,
) -> NodePod:
    """Return a pod of the job; ``created`` and ``ended`` are in seconds before now."""
    end = None if ended is None else {"terminated": {"finishedAt": ago(ended)}}
    body = {
        "metadata": {
            "name": name,
            "uid": name,
            "finalizers": [FINALIZER] if tracked else [],
            "deletionTimestamp": ago(0) if terminating else None,
            "creationTimestamp": ago(created),
        },
        "spec": {"containers": [], "nodeName": "node"},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(phase == "Running")}],
            "containerStatuses": [{"restartCount": restarts, "state": end or {}}],
        },
    }
    return msgspec.convert(body, NodePod)

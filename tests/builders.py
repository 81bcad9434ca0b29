"""Data for tests: valid by default, so that a test names only what it is about."""

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.api.job import Job, JobObject, Replica
from dlctl.api.pods import Pod
from dlctl.dialects.kinds import Kind, by_api_version, kinds
from dlctl.frameworks.registry import installed

NOW = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)
KINDS = kinds(installed())


def kind_of(api_version: str = "kubeflow.org/v1alpha1", kind: str = "MXJob") -> Kind:
    found = by_api_version(KINDS, api_version, kind)
    assert found is not None
    return found


def template(*containers: str) -> dict[str, Any]:
    names = containers or ("mxnet",)
    return {"spec": {"containers": [{"name": name, "image": "mxnet:1"} for name in names]}}


def mxjob(*, servers: int = 1, workers: int = 2, **spec: Any) -> dict[str, Any]:
    """Return a manifest of ``kubeflow.org/v1alpha1``, as the server would hold it."""
    counts = {"SCHEDULER": 1, "SERVER": servers, "WORKER": workers}
    specs = [
        {"mxReplicaType": type_, "replicas": count, "template": template()}
        for type_, count in counts.items()
    ]
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MXJob",
        "metadata": {"name": "linear", "namespace": "ml", "uid": "job-uid", "generation": 1},
        "spec": {"replicaSpecs": specs, **spec},
    }


def job_object(manifest: Mapping[str, Any]) -> JobObject:
    return msgspec.json.decode(msgspec.json.encode(manifest), type=JobObject)


def make_job(manifest: Mapping[str, Any] | None = None, **spec: Any) -> Job:
    manifest = manifest or mxjob(**spec)
    return kind_of(manifest["apiVersion"], manifest["kind"]).read(job_object(manifest))


def exited(code: int, *, reason: str = "", at: datetime.datetime = NOW) -> dict[str, Any]:
    """Return the wire form of a container's end."""
    started = at - datetime.timedelta(seconds=5)
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "startedAt": started.isoformat(),
            "finishedAt": at.isoformat(),
        }
    }


RUNNING = {"running": {"startedAt": NOW.isoformat()}}


def make_pod(
    job: Job,
    replica: Replica,
    *,
    phase: str = "Running",
    state: Mapping[str, Any] | None = None,
    last_state: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """Return the pod of a replica; ``state`` is that of its one container."""
    container: dict[str, Any] = {"name": "mxnet", "restartCount": 1 if last_state else 0}
    if state is not None:
        container["state"] = state
    if last_state is not None:
        container["lastState"] = last_state
    wire = {
        "metadata": {
            "name": job.child_name(replica),
            "namespace": job.key.namespace,
            "uid": f"uid-of-{replica}",
            **(metadata or {}),
        },
        "status": {"phase": phase, "containerStatuses": [container], **status},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=Pod)

"""Data for tests: valid by default, so that a test names only what it is about."""

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.api.job import Job, Replica
from dlctl.api.objects.jobs import JobObject
from dlctl.api.objects.pods import Pod
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version, served_kinds
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.frameworks.registry import load_frameworks
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.observe import Children, Observed, observe

NOW = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)
KINDS = served_kinds(load_frameworks().frameworks)


def kind_of(api_version: str = "kubeflow.org/v1alpha1", kind: str = "MXJob") -> Kind:
    found = kind_of_api_version(KINDS, api_version, kind)
    assert found is not None
    return found


def template(*containers: str) -> dict[str, Any]:
    names = containers or ("mxnet",)
    return {"spec": {"containers": [{"name": name, "image": "mxnet:1"} for name in names]}}


def manifest(api_version: str, kind: str, spec: Any, *, name: str = "linear") -> dict[str, Any]:
    """Return a job as the server stores it."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "ml", "uid": "job-uid", "generation": 1},
        "spec": spec,
    }


def entry(type_: str = "WORKER", replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """Return an entry of ``replicaSpecs``; fields that are None are omitted."""
    whole = {"mxReplicaType": type_, "replicas": replicas, "template": template(), **fields}
    return {field: value for field, value in whole.items() if value is not None}


def mxjob(
    *,
    group: str = "kubeflow.org",
    name: str = "linear",
    servers: int = 1,
    workers: int = 2,
    **spec: Any,
) -> dict[str, Any]:
    """Return a manifest in the list form of one of the mx-operators."""
    specs = [entry("SCHEDULER"), entry("SERVER", servers), entry("WORKER", workers)]
    fields = {"replicaSpecs": specs, **spec}
    return manifest(f"{group}/v1alpha1", "MXJob", fields, name=name)


def tfjob_of_tensorflow_org(*, name: str = "linear", **spec: Any) -> dict[str, Any]:
    """Return a manifest in tf-operator's list form before it had Kubeflow's group."""
    counts = {"MASTER": 1, "PS": 1, "WORKER": 2}
    specs = [
        {"tfReplicaType": type_, "replicas": count, "template": template("tensorflow")}
        for type_, count in counts.items()
    ]
    fields = {"replicaSpecs": specs, **spec}
    return manifest("tensorflow.org/v1alpha1", "TfJob", fields, name=name)


def xgboost_operators_job(
    version: str = "v1", /, *, name: str = "linear", **spec: Any
) -> dict[str, Any]:
    """Return a manifest of xgboost-operator."""
    specs = {
        type_: {"replicas": count, "template": template("xgboostjob")}
        for type_, count in (("Master", 1), ("Worker", 2))
    }
    api_version = f"xgboostjob.kubeflow.org/{version}"
    return manifest(api_version, "XGBoostJob", {"xgbReplicaSpecs": specs, **spec}, name=name)


def bare_job(kind: str = "MXJob", name: str = "linear", /, **counts: int) -> dict[str, Any]:
    """Return a manifest in dl-operator's form; ``counts`` are replicas by type."""
    container = kind.removesuffix("Job").lower()
    container = {"mx": "mxnet", "tf": "tensorflow"}.get(container, container)
    entries = [
        {"replicaType": type_.upper(), "replicas": count, "template": template(container)}
        for type_, count in (counts or {"scheduler": 1, "server": 1, "worker": 2}).items()
    ]
    return manifest("mpba.fbk.eu/v1", kind, entries, name=name)


def training_job(kind: str, name: str = "linear", /, **counts: int) -> dict[str, Any]:
    """Return a manifest in Kubeflow's map form; ``counts`` are replicas by type as it is spelt."""
    dialect = kind_of("kubeflow.org/v1", kind).dialects["v1"]
    assert isinstance(dialect, ReplicaMap)
    specs = {
        type_: {"replicas": count, "template": template(dialect.framework.container_name())}
        for type_, count in counts.items()
    }
    return manifest("kubeflow.org/v1", kind, {dialect.kind.replica_specs_field: specs}, name=name)


def job_object(wire: Mapping[str, Any]) -> JobObject:
    return msgspec.json.decode(msgspec.json.encode(wire), type=JobObject)


def decoded(wire: Mapping[str, Any]) -> DecodedObject:
    """Return the object of a manifest as its kind decodes it."""
    return kind_of(wire["apiVersion"], wire["kind"]).decode(job_object(wire))


def make_job(wire: Mapping[str, Any] | None = None, **spec: Any) -> Job:
    """Return the job decoded from a manifest, by default from :func:`mxjob`."""
    wire = wire or mxjob(**spec)
    return kind_of(wire["apiVersion"], wire["kind"]).read(decoded(wire))


def renderer_of(wire: Mapping[str, Any]) -> Renderer:
    """Return the renderer of the children of a manifest's job."""
    return Renderer(make_job(wire), decoded(wire).dialect)


def exited(code: int, *, reason: str = "", at: datetime.datetime = NOW) -> dict[str, Any]:
    """Return a terminated container state."""
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
    restart_policy: str = "",
    node_name: str = "",
    **status: Any,
) -> Pod:
    """Return the pod of a replica with the given state of its single container.

    By default its restart policy is that of its template.
    """
    spec = job.replica_spec(replica.type)
    wanted = spec.template["spec"].get("restartPolicy") if spec else None
    policy = restart_policy or wanted or "OnFailure"
    name = spec.container if spec else "mxnet"
    container: dict[str, Any] = {"name": name, "restartCount": 1 if last_state else 0}
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
        "spec": {"restartPolicy": policy, **({"nodeName": node_name} if node_name else {})},
        "status": {"phase": phase, "containerStatuses": [container], **status},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=Pod)


def observed_of(job: Job, *pods: Pod, now: datetime.datetime = NOW, **children: Any) -> Observed:
    """Return the observation of a job with these pods, and other fields of its children."""
    return observe(job, Children(pods, **children), now)

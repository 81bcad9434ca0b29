"""Valid manifests of et-operator's group, of which a test changes what it is about."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.scalers import Scaler, ScalerObject
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from tests.builders import make_job, manifest, template

GROUP = "kai.alibabacloud.com/v1alpha1"


def elastic_job(
    *,
    name: str = "linear",
    launcher: Mapping[str, Any] | None = None,
    worker: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    status: Any = None,
    **spec: Any,
) -> JSON:
    """Return a TrainingJob; ``launcher`` and ``worker`` are more fields of their specs."""
    specs = {
        "launcher": {"replicas": 1, "template": template("main"), **(launcher or {})},
        "worker": {"replicas": 2, "template": template("main"), **(worker or {})},
    }
    wire = manifest(GROUP, "TrainingJob", {"etReplicaSpecs": specs, **spec}, name=name)
    wire["metadata"]["annotations"] = dict(annotations or {})
    return wire if status is None else {**wire, "status": status}


def read_job(**fields: Any) -> Job:
    return make_job(elastic_job(**fields))


def scaler_manifest(kind: str, spec: Any, status: Any = None) -> JSON:
    wire = manifest(GROUP, kind, spec, name="change")
    wire["metadata"]["creationTimestamp"] = "2026-01-01T12:00:00Z"
    return wire if status is None else {**wire, "status": status}


def scale_in(**spec: Any) -> JSON:
    """Return a ScaleIn; by default it removes 1 worker."""
    fields = {"selector": {"name": "linear"}, "toDelete": {"count": 1}, **spec}
    return scaler_manifest("ScaleIn", fields)


def scale_out(**spec: Any) -> JSON:
    """Return a ScaleOut; by default it adds 2 workers."""
    fields = {"selector": {"name": "linear"}, "toAdd": {"count": 2}, **spec}
    return scaler_manifest("ScaleOut", fields)


def read_scaler(wire: Mapping[str, Any]) -> Scaler:
    obj = msgspec.json.decode(msgspec.json.encode(wire), type=ScalerObject)
    resource = SCALE_OUTS if wire["kind"] == SCALE_OUTS.kind else SCALE_INS
    return scalers.read(obj, resource)

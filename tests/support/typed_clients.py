"""How Kubeflow's typed clients decode stored objects: v1's Go types, field by field.

Unknown fields are skipped, null counts as absent, and any other value of a wrong type is an error,
which fails the whole list that contains the object.
"""

import datetime
from typing import Annotated, Any, Literal

import msgspec

# RFC 3339: Go rejects a time without a zone.
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


class _Condition(msgspec.Struct, rename="camel"):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_update_time: _Time | None = None
    last_transition_time: _Time | None = None


class _Requirement(msgspec.Struct, rename="camel"):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _LabelSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Requirement] | None = None


class _Replicas(msgspec.Struct, rename="camel"):
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    label_selector: _LabelSelector | None = None
    selector: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    replica_statuses: dict[str, _Replicas | None] | None = None
    start_time: _Time | None = None
    completion_time: _Time | None = None
    last_reconcile_time: _Time | None = None


class _SchedulingPolicy(msgspec.Struct, rename="camel"):
    min_available: int | None = None
    queue: str | None = None
    min_resources: dict[str, str | int | float] | None = None
    priority_class: str | None = None
    schedule_timeout_seconds: int | None = None


class _RunPolicy(msgspec.Struct, rename="camel"):
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    scheduling_policy: _SchedulingPolicy | None = None
    suspend: bool | None = None
    managed_by: str | None = None


class _Replica(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    # Of core/v1's template, only that it is an object.
    template: dict[str, Any] | None = None
    restart_policy: str | None = None


class _TFJobSpec(msgspec.Struct, rename="camel"):
    run_policy: _RunPolicy | None = None
    success_policy: str | None = None
    tf_replica_specs: dict[str, _Replica | None] | None = None
    enable_dynamic_worker: bool | None = None


class _MXJobSpec(msgspec.Struct, rename="camel"):
    run_policy: _RunPolicy | None = None
    job_mode: str | None = None
    mx_replica_specs: dict[str, _Replica | None] | None = None


class _ElasticPolicy(msgspec.Struct, rename="camel"):
    min_replicas: int | None = None
    max_replicas: int | None = None
    max_restarts: int | None = None
    metrics: list[dict[str, Any]] | None = None


class _PyTorchJobSpec(msgspec.Struct, rename="camel"):
    run_policy: _RunPolicy | None = None
    elastic_policy: _ElasticPolicy | None = None
    pytorch_replica_specs: dict[str, _Replica | None] | None = None
    nproc_per_node: str | None = None


_SPECS = {"TFJob": _TFJobSpec, "MXJob": _MXJobSpec, "PyTorchJob": _PyTorchJobSpec}


def undecodable_status(status: Any) -> str:
    """Return why a status cannot be decoded, or an empty string."""
    return _decode_error(status, _Status)


def undecodable_spec(spec: Any, kind: Literal["TFJob", "MXJob", "PyTorchJob"]) -> str:
    """Return why a spec cannot be decoded, or an empty string."""
    return _decode_error(spec, _SPECS[kind])


def _decode_error(value: Any, type_: type) -> str:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        return str(error)
    return ""

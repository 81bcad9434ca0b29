"""Defaults and validation of HorizontalPodAutoscalers. Nothing here scales anything."""

from collections.abc import Iterator, Sequence
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError

# The field with the details of each metric type.
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_CPU_PERCENT: Final = 80


def default_autoscaler(scaler: JSON) -> None:
    spec = scaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    scaler.setdefault("status", {"desiredReplicas": 0, "currentMetrics": None})


def autoscaler_errors(scaler: JSON) -> Sequence[FieldError]:
    spec = scaler["spec"]
    return [
        *_range(spec),
        *_target(spec.get("scaleTargetRef", {})),
        *_metrics(spec["metrics"]),
    ]


def _range(spec: JSON) -> Iterator[FieldError]:
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    if least < 1:
        detail = "must be greater than or equal to 1"
        yield FieldError.invalid("spec.minReplicas", least, detail)
    if most < 1:
        yield FieldError.required("spec.maxReplicas", "must be set and greater than 0")
    if most < least:
        detail = "must be greater than or equal to `minReplicas`"
        yield FieldError.invalid("spec.maxReplicas", most, detail)
    types = {metric.get("type") for metric in spec["metrics"]}
    if least == 0 and not types & {"Object", "External"}:
        detail = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        yield FieldError.forbidden("spec.metrics", detail)


def _target(reference: JSON) -> Iterator[FieldError]:
    path = "spec.scaleTargetRef"
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if not value:
            yield FieldError.required(f"{path}.{field}")
        for wrong in ("/", "%"):
            if wrong in value:
                yield FieldError.invalid(f"{path}.{field}", value, f"may not contain '{wrong}'")
    version = reference.get("apiVersion", "")
    if "/" not in version and reference.get("kind") != "ReplicationController":
        detail = "apiVersion must specify API group"
        yield FieldError.invalid(f"{path}.apiVersion", version, detail)


def _metrics(metrics: Sequence[JSON]) -> Iterator[FieldError]:
    for index, metric in enumerate(metrics):
        where, type_ = f"spec.metrics[{index}]", metric.get("type", "")
        if not type_:
            yield FieldError.required(f"{where}.type", "must specify a metric source type")
        if type_ not in _SOURCES:
            yield FieldError.unsupported(f"{where}.type", type_, sorted(_SOURCES))
            continue
        field = _SOURCES[type_]
        if field not in metric:
            detail = "must populate information for the given metric source"
            yield FieldError.required(f"{where}.{field}", detail)
        else:
            yield from _source(metric[field], type_, f"{where}.{field}")


def _source(source: JSON, type_: str, path: str) -> Iterator[FieldError]:
    if type_ in ("Resource", "ContainerResource"):
        if not source.get("name"):
            yield FieldError.required(f"{path}.name", "must specify a resource name")
    elif not source.get("metric", {}).get("name"):
        yield FieldError.required(f"{path}.metric.name", "must specify a metric name")
    target, where = source.get("target", {}), f"{path}.target"
    if not target.get("type"):
        yield FieldError.required(f"{where}.type", "must specify a metric target type")
    if target.get("type", "") not in _TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        yield FieldError.invalid(f"{where}.type", target.get("type", ""), detail)
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield FieldError.invalid(
            f"{where}.averageUtilization", utilization, "must be greater than 0"
        )
    yield from _amount(target, type_, where)


def _amount(target: JSON, type_: str, path: str) -> Iterator[FieldError]:
    if type_ == "Pods":
        if "averageValue" not in target:
            detail = "must specify a positive target averageValue"
            yield FieldError.required(f"{path}.averageValue", detail)
    elif type_ in ("Resource", "ContainerResource") and not (
        {"averageUtilization", "averageValue"} & set(target)
    ):
        detail = "must set either a target raw value or a target utilization"
        yield FieldError.required(f"{path}.averageUtilization", detail)

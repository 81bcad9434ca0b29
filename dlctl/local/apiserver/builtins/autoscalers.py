"""Defaults and validation of HorizontalPodAutoscalers. Nothing here scales anything."""

from collections.abc import Iterator, Sequence
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.quantities import parse_quantity
from dlctl.local.apiserver.status import FieldError

# The field with the details of each metric type.
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
# The order in which the server looks for them.
_SOURCE_ORDER: Final = ("object", "external", "pods", "resource", "containerResource")
_OF_RESOURCES: Final = ("resource", "containerResource")
_ONE_OF_RESOURCE: Final = (
    "averageUtilization",
    frozenset({"averageUtilization", "averageValue"}),
    "must set either a target raw value or a target utilization",
)
_VALUES: Final = frozenset({"value", "averageValue"})
# By source: the field that an error names, the values of which one is needed, and the message.
_AMOUNTS: Final = {
    "containerResource": _ONE_OF_RESOURCE,
    "external": (
        "averageValue",
        _VALUES,
        "must set either a target value for metric or a per-pod target",
    ),
    "object": ("averageValue", _VALUES, "must set either a target value or averageValue"),
    "pods": (
        "averageValue",
        frozenset({"averageValue"}),
        "must specify a positive target averageValue",
    ),
    "resource": _ONE_OF_RESOURCE,
}
_TWO_OF_RESOURCE: Final = (
    "averageValue",
    "may not set both a target raw value and a target utilization",
)
# Sources that may not have both of the values.
_EXCLUDED_AMOUNTS: Final = {
    "containerResource": _TWO_OF_RESOURCE,
    "external": ("value", "may not set both a target value for metric and a per-pod target"),
    "resource": _TWO_OF_RESOURCE,
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
        *_scale_target(spec.get("scaleTargetRef", {})),
        *_metrics(spec["metrics"]),
    ]


def _range(spec: JSON) -> Iterator[FieldError]:
    minimum, maximum = spec["minReplicas"], spec.get("maxReplicas", 0)
    if minimum < 1:
        detail = "must be greater than or equal to 1"
        yield FieldError.invalid("spec.minReplicas", minimum, detail)
    if maximum < 1:
        yield FieldError.required("spec.maxReplicas", "must be set and greater than 0")
    if maximum < minimum:
        detail = "must be greater than or equal to `minReplicas`"
        yield FieldError.invalid("spec.maxReplicas", maximum, detail)
    types = {metric.get("type") for metric in spec["metrics"]}
    if minimum == 0 and not types & {"Object", "External"}:
        detail = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        yield FieldError.forbidden("spec.metrics", detail)


def _scale_target(reference: JSON) -> Iterator[FieldError]:
    path = "spec.scaleTargetRef"
    yield from _reference(reference, path)
    version = reference.get("apiVersion", "")
    if "/" not in version and reference.get("kind") != "ReplicationController":
        detail = "apiVersion must specify API group"
        yield FieldError.invalid(f"{path}.apiVersion", version, detail)


def _reference(reference: JSON, path: str) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if not value:
            yield FieldError.required(f"{path}.{field}")
        for wrong in ("/", "%"):
            if wrong in value:
                yield FieldError.invalid(f"{path}.{field}", value, f"may not contain '{wrong}'")


def _metrics(metrics: Sequence[JSON]) -> Iterator[FieldError]:
    for index, metric in enumerate(metrics):
        where, type_ = f"spec.metrics[{index}]", metric.get("type", "")
        if not type_:
            yield FieldError.required(f"{where}.type", "must specify a metric source type")
        if type_ not in _SOURCES:
            yield FieldError.unsupported(f"{where}.type", type_, sorted(_SOURCES))
        given = [field for field in _SOURCE_ORDER if field in metric]
        # Only the first source is looked into.
        for field in given[:1]:
            yield from _source(metric[field], field, f"{where}.{field}")
        expected = _SOURCES.get(type_)
        if expected and expected not in given:
            detail = "must populate information for the given metric source"
            yield FieldError.required(f"{where}.{expected}", detail)
        for field in given if len(given) > 1 else ():
            if field != expected:
                detail = "must populate the given metric source only"
                yield FieldError.forbidden(f"{where}.{field}", detail)


def _source(source: JSON, field: str, path: str) -> Iterator[FieldError]:
    if field == "object":
        described = source.get("describedObject", {})
        yield from _reference(described, f"{path}.describedObject")
    if field in _OF_RESOURCES:
        if not source.get("name"):
            yield FieldError.required(f"{path}.name", "must specify a resource name")
    elif not source.get("metric", {}).get("name"):
        yield FieldError.required(f"{path}.metric.name", "must specify a metric name")
    if field == "containerResource" and not source.get("container"):
        yield FieldError.required(f"{path}.container", "must specify a container")
    yield from _target(source.get("target", {}), field, f"{path}.target")


def _target(target: JSON, field: str, path: str) -> Iterator[FieldError]:
    if not target.get("type"):
        yield FieldError.required(f"{path}.type", "must specify a metric target type")
    if target.get("type", "") not in _TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        yield FieldError.invalid(f"{path}.type", target.get("type", ""), detail)
    for name in ("value", "averageValue"):
        if name in target and parse_quantity(target[name]) <= 0:
            yield FieldError.invalid(f"{path}.{name}", target[name], "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield FieldError.invalid(
            f"{path}.averageUtilization", utilization, "must be greater than 0"
        )
    yield from _amount(target, field, path)


def _amount(target: JSON, field: str, path: str) -> Iterator[FieldError]:
    """Yield that the target lacks the values that its source needs, or has one too many."""
    name, needed, missing = _AMOUNTS[field]
    if not needed & set(target):
        yield FieldError.required(f"{path}.{name}", missing)
    excluded = _EXCLUDED_AMOUNTS.get(field)
    if excluded and needed <= set(target):
        name, detail = excluded
        yield FieldError.forbidden(f"{path}.{name}", detail)

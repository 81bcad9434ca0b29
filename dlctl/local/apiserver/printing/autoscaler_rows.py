"""Computed cells of HorizontalPodAutoscalers: what they scale, and by which metrics."""

import datetime
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from dlctl.api.json_types import JSON

_SHOWN: Final = 2


def autoscaler_cells(obj: JSON, _now: datetime.datetime) -> JSON:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec["scaleTargetRef"]
    return {
        "Reference": f"{target['kind']}/{target['name']}",
        "Targets": _targets(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        "MinPods": str(spec.get("minReplicas", "<unset>")),
        "MaxPods": spec["maxReplicas"],
        "Replicas": status.get("currentReplicas", 0),
    }


def _targets(metrics: Any, observed: Any) -> str:
    pairs = list(zip_longest(metrics, observed[: len(metrics)]))
    shown = ", ".join(_target(metric, current or {}) for metric, current in pairs[:_SHOWN])
    more = f" + {len(pairs) - _SHOWN} more..." if len(pairs) > _SHOWN else ""
    return f"{shown}{more}" or "<none>"


def _target(metric: JSON, current: JSON) -> str:
    type_ = metric["type"]
    field = type_[:1].lower() + type_[1:]
    source, seen = metric.get(field) or {}, (current.get(field) or {}).get("current") or {}
    wanted = source.get("target") or {}
    name = "averageValue" if "averageValue" in wanted else "value"
    if "averageUtilization" in wanted:
        text = f"{_percent(seen)}/{wanted['averageUtilization']}%"
    else:
        text = f"{seen.get(name, '<unknown>')}/{wanted.get(name, '<auto>')}"
    if type_ in ("Resource", "ContainerResource"):
        return f"{source['name']}: {text}"
    averaged = type_ in ("Object", "External") and name == "averageValue"
    return f"{text} (avg)" if averaged else text


def _percent(seen: Mapping[str, Any]) -> str:
    used = seen.get("averageUtilization")
    return "<unknown>" if used is None else f"{used}%"

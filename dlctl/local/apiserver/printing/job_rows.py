"""Computed cells of Jobs: state, progress and duration, as ``kubectl get jobs`` shows them."""

import datetime
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.printing.ages import age_of

# The first condition that is true is the state; "" stands for a deletion.
_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job_cells(obj: JSON, now: datetime.datetime) -> JSON:
    spec, status = obj["spec"], obj.get("status", {})
    true = {c.get("type") for c in status.get("conditions", ()) if c.get("status") == "True"}
    true |= {""} if obj["metadata"].get("deletionTimestamp") else set()
    containers = spec["template"]["spec"].get("containers", ())
    return {
        "Status": next((word for type_, word in _STATES if type_ in true), "Running"),
        "Completions": f"{status.get('succeeded', 0)}/{_wanted(spec)}",
        "Duration": _duration(status, now),
        "Containers": ",".join(each["name"] for each in containers),
        "Images": ",".join(each.get("image", "") for each in containers),
        "Selector": _selector_text(spec.get("selector")),
    }


def _wanted(spec: JSON) -> str:
    if "completions" in spec:
        return str(spec["completions"])
    return f"1 of {spec['parallelism']}" if spec["parallelism"] > 1 else "1"


def _duration(status: JSON, now: datetime.datetime) -> str:
    if "startTime" not in status:
        return ""
    end = status.get("completionTime")
    return age_of(status["startTime"], datetime.datetime.fromisoformat(end) if end else now)


def _selector_text(selector: JSON | None) -> str:
    labels = (selector or {}).get("matchLabels", {})
    parts = [f"{key}={labels[key]}" for key in sorted(labels)]
    parts += [_requirement(each) for each in (selector or {}).get("matchExpressions", ())]
    return ",".join(parts) or "<none>"


def _requirement(requirement: JSON) -> str:
    key, operator = requirement["key"], requirement["operator"]
    match operator:
        case "Exists":
            return str(key)
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(sorted(requirement['values']))})"

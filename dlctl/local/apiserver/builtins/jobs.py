"""Defaults of Jobs, and the selector by which each one finds its own pods."""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.builtins.pod_defaults import default_template_spec
from dlctl.local.apiserver.validation.jobs import CONTROLLER_UID, POD_LABELS

_BACKOFF_LIMIT: Final = 6
_COUNTS: Final = ("active", "succeeded", "failed", "completedIndexes")


def default_job(job: JSON) -> None:
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    defaults: JSON = {
        "parallelism": 1,
        "backoffLimit": _BACKOFF_LIMIT,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_template_spec(template.setdefault("spec", {}))
    default_status(job)


def default_status(job: JSON) -> None:
    """Write the status as a typed server does: no counts of zero, and times even if unknown."""
    status = job.setdefault("status", {})
    for name in _COUNTS:
        if not status.get(name):
            status.pop(name, None)
    for condition in status.get("conditions", ()):
        for name in ("lastProbeTime", "lastTransitionTime"):
            condition.setdefault(name, None)


def default_labels(_old: JSON, job: JSON) -> None:
    """Label a job without labels like its pods."""
    labels = job.get("spec", {}).get("template", {}).get("metadata", {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def with_selector(job: JSON) -> JSON:
    """Return a new job that selects its pods by its UID, and labels itself like its pods.

    Labels of pods that the user has set stay: they are wrong, and validation says so.
    """
    selected = job if job["spec"]["manualSelector"] else _with_generated_selector(job)
    selected = {**selected, "metadata": {**selected["metadata"]}}
    default_labels(job, selected)
    return selected


def _with_generated_selector(job: JSON) -> JSON:
    spec, meta = job["spec"], job["metadata"]
    template, selector = spec["template"], spec.get("selector", {})
    own = {label: meta.get(field, "") for label, field in POD_LABELS.items()}
    labels = own | template["metadata"].get("labels", {})
    template = {**template, "metadata": template["metadata"] | {"labels": labels}}
    selected = {CONTROLLER_UID: meta["uid"], **selector.get("matchLabels", {})}
    selector = {**selector, "matchLabels": selected}
    return {**job, "spec": {**spec, "selector": selector, "template": template}}

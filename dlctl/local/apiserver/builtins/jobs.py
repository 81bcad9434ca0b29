"""Defaults of Jobs, and the selector by which each one finds its own pods."""

from typing import Final

from dlctl.local.apiserver.builtins.pod_defaults import default_template_spec
from dlctl.local.apiserver.resources import JSON
from dlctl.local.apiserver.validation.jobs import CONTROLLER_UID, POD_LABELS

_BACKOFF_LIMIT: Final = 6


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
    labels = template["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
    job.setdefault("status", {})


def with_selector(job: JSON) -> JSON:
    """Return a new job that selects its pods by its UID, and whose pods have its labels.

    Labels that the user has set stay: they are wrong, and validation says so.
    """
    spec, meta = job["spec"], job["metadata"]
    if spec["manualSelector"]:
        return job
    template, selector = spec["template"], spec.get("selector", {})
    own = {label: meta[field] for label, field in POD_LABELS.items()}
    labels = own | template["metadata"].get("labels", {})
    template = {**template, "metadata": template["metadata"] | {"labels": labels}}
    selected = {CONTROLLER_UID: meta["uid"], **selector.get("matchLabels", {})}
    selector = {**selector, "matchLabels": selected}
    return {**job, "spec": {**spec, "selector": selector, "template": template}}

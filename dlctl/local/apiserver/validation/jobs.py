"""Validation of Jobs: their spec, their generated selector, and what this cluster cannot run.

Updates and statuses have modules of their own. Defaults have been set before.
"""

from collections.abc import Iterator
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.label_matching import selects
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.metadata import template_metadata_errors
from dlctl.local.apiserver.validation.names import dns_subdomain
from dlctl.local.apiserver.validation.pods import pod_spec_errors

JOB_NAME: Final = "batch.kubernetes.io/job-name"
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
# The labels that every pod of a job has, by the field of the job's metadata that is their value.
POD_LABELS: Final = {
    "job-name": "name",
    JOB_NAME: "name",
    "controller-uid": "uid",
    CONTROLLER_UID: "uid",
}
_NOT_NEGATIVE: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_RESTARTS: Final = ("OnFailure", "Never")
_MODES: Final = ("NonIndexed", "Indexed")
# Nothing in this cluster would act on these.
_UNSUPPORTED: Final = (
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "podFailurePolicy",
    "successPolicy",
)
_MAX_MANAGED_BY: Final = 63


def job_errors(job: JSON) -> list[FieldError]:
    return [*_generated_selector(job), *_spec(job["spec"])]


def _generated_selector(job: JSON) -> Iterator[FieldError]:
    spec, meta = job["spec"], job["metadata"]
    if spec["manualSelector"] or "selector" not in spec:
        return
    labels = spec["template"]["metadata"].get("labels") or {}
    expected = {label: meta.get(field, "") for label, field in POD_LABELS.items()}
    for label, value in expected.items():
        path = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            yield FieldError.required(path, f"must be '{value}'")
        elif labels[label] != value:
            yield FieldError.invalid(path, labels, f"must be '{value}'")
    if not selects(spec["selector"], expected):
        detail = "`selector` not auto-generated"
        yield FieldError.invalid("spec.selector", spec["selector"], detail)


def _spec(spec: JSON) -> Iterator[FieldError]:
    for name in _NOT_NEGATIVE:
        if spec.get(name, 0) < 0:
            detail = "must be greater than or equal to 0"
            yield FieldError.invalid(f"spec.{name}", spec[name], detail)
    if spec.get("managedBy") is not None:
        yield from _managed_by(spec["managedBy"])
    yield from _unsupported(spec)
    if spec["podReplacementPolicy"] not in _REPLACEMENTS:
        value = spec["podReplacementPolicy"]
        yield FieldError.unsupported("spec.podReplacementPolicy", value, _REPLACEMENTS)
    yield from _template(spec["template"])
    yield from _selector(spec)


def _managed_by(name: str) -> Iterator[FieldError]:
    path = "spec.managedBy"
    domain, slash, rest = name.partition("/")
    if not name:
        yield FieldError.required(path)
    elif not slash or not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield FieldError.invalid(path, name, detail)
    else:
        for complaint in dns_subdomain(domain):
            yield FieldError.invalid(path, domain, complaint)
    if len(name) > _MAX_MANAGED_BY:
        yield FieldError.too_long(path, _MAX_MANAGED_BY)


def _unsupported(spec: JSON) -> Iterator[FieldError]:
    mode = spec["completionMode"]
    if mode not in _MODES:
        yield FieldError.unsupported("spec.completionMode", mode, _MODES)
    elif mode == "Indexed":
        detail = "the embedded cluster runs NonIndexed jobs only"
        yield FieldError.forbidden("spec.completionMode", detail)
    for name in _UNSUPPORTED:
        if name in spec:
            detail = "the embedded cluster does not support this field"
            yield FieldError.forbidden(f"spec.{name}", detail)


def _template(template: JSON) -> Iterator[FieldError]:
    yield from template_metadata_errors(template["metadata"])
    spec = template["spec"]
    yield from pod_spec_errors(spec, "spec.template.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield FieldError.forbidden("spec.template.spec.ephemeralContainers", detail)
    path, restart = "spec.template.spec.restartPolicy", spec["restartPolicy"]
    if restart in ("", "Always"):
        yield FieldError.required(path, 'valid values: "OnFailure", "Never"')
    elif restart not in _RESTARTS:
        yield FieldError.unsupported(path, restart, _RESTARTS)


def _selector(spec: JSON) -> Iterator[FieldError]:
    if "selector" not in spec:
        yield FieldError.required("spec.selector")
    labels = spec["template"]["metadata"].get("labels")
    if "selector" not in spec or not selects(spec["selector"], labels or {}):
        detail = "`selector` does not match template `labels`"
        yield FieldError.invalid("spec.template.metadata.labels", labels, detail)

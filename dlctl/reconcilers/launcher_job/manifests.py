"""A launcher's Job and the patches of it, in wire format. Pure."""

from collections.abc import Mapping

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.kube.merge_diff import merge_diff
from dlctl.reconcilers.launcher_job.next_write import LauncherJobAction, LauncherJobWrite


def batch_job(metadata: JSON, launcher: LauncherJob, pod: JSON, *, suspended: bool) -> JSON:
    """Return the Job of a launcher, of which ``pod`` is the rendered pod."""
    spec: JSON = {
        "backoffLimit": launcher.backoff_limit,
        "activeDeadlineSeconds": launcher.active_deadline_s,
        # A pod that is being deleted still runs: two launchers would share the workers.
        "podReplacementPolicy": "Failed",
        "suspend": suspended or None,
        "template": pod_template(pod),
    }
    return {
        "apiVersion": BATCH_JOBS.api_version,
        "kind": BATCH_JOBS.kind,
        "metadata": metadata,
        "spec": {name: value for name, value in spec.items() if value is not None},
    }


def pod_template(pod: JSON) -> JSON:
    """Return the template of a rendered pod: its name and owner are the Job's business."""
    kept = ("labels", "annotations", "finalizers")
    metadata = {name: value for name, value in pod["metadata"].items() if name in kept and value}
    return {"metadata": metadata, "spec": pod["spec"]}


def patch(job: Job, planned: LauncherJobWrite, template: JSON) -> tuple[JSON, str]:
    """Return the merge patch of a write to an existing Job, and the subresource that it is for."""
    match planned.action:
        case LauncherJobAction.CLEAR_START_TIME:
            return {"status": {"startTime": None}}, "status"
        case LauncherJobAction.RESUME if planned.existing is not None:
            return _resumption(planned.existing.node_selector, template), ""
        case LauncherJobAction.REMOVE_TTL:
            return {"spec": {"ttlSecondsAfterFinished": None}}, ""
        case LauncherJobAction.SET_TTL if job.launcher_job is not None:
            return {"spec": {"ttlSecondsAfterFinished": job.launcher_job.ttl_after_finished_s}}, ""
    return {"spec": {"suspend": True}}, ""


def _resumption(node_selector: Mapping[str, str], template: JSON) -> JSON:
    """Return the patch that resumes a Job with the placement that its queue has chosen since."""
    spec = template["spec"]
    placement = {name: spec.get(name) or None for name in ("tolerations", "schedulingGates")}
    selector = merge_diff(node_selector, spec.get("nodeSelector") or {})
    # Labels and annotations that others have added are kept.
    metadata = {n: template["metadata"].get(n) or {} for n in ("labels", "annotations")}
    changed = {"metadata": metadata, "spec": {**placement, "nodeSelector": selector}}
    return {"spec": {"suspend": False, "template": changed}}

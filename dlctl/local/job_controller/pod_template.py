"""The pod that a job creates: its template, under a generated name, owned and tracked. Pure."""

from typing import Any

from dlctl.api.meta import BATCH_JOBS, owner_reference
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.job_controller.pod_state import FINALIZER


def new_pod(job: ControlledBatchJob) -> dict[str, Any]:
    template = job.spec.template
    meta = template.get("metadata") or {}
    owner = owner_reference(BATCH_JOBS, name=job.metadata.name, uid=job.metadata.uid)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{job.metadata.name}-",
            "namespace": job.metadata.namespace,
            "labels": meta.get("labels") or {},
            "annotations": meta.get("annotations") or {},
            "finalizers": [*(meta.get("finalizers") or ()), FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }

"""What it takes to have the controller use all it may do for the sake of Kubeflow's kinds.

No pod of these jobs ever runs, except a launcher that fails.
"""

import json
from functools import partial
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl
from e2e.suite import jobs, kubeflow, mpi

# No node has this label, so the pods stay pending.
UNSCHEDULABLE: Final = {"nodeSelector": {"e2e": "nowhere"}}
FORMER_GROUPS: Final = ("tfjobs.tensorflow.org", "xgboostjobs.xgboostjob.kubeflow.org")
# As many pods, and services, as are deleted by one request.
MANY: Final = attrs.evolve(kubeflow.BY_NAME["PyTorchJob"], replicas={"Worker": 12})


def submit(kubectl: Kubectl) -> None:
    """Create a lasting job of each kind, one that is deleted within seconds, and a large one."""
    fails = {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0}
    cleaned = {"activeDeadlineSeconds": 10, "cleanPodPolicy": "All"}
    kubectl.apply(
        *(kind.job("stays", ["true"], pod=UNSCHEDULABLE) for kind in kubeflow.KINDS),
        *(
            kind.job("goes", ["true"], pod=UNSCHEDULABLE, runPolicy=fails, **elastic(kind))
            for kind in kubeflow.KINDS
        ),
        MANY.job("many", ["true"], pod=UNSCHEDULABLE, runPolicy=cleaned),
        list_form("TFJob", "tfReplicaSpecs", "tfReplicaType"),
        list_form("PyTorchJob", "pytorchReplicaSpecs", "replicaType"),
        *of_former_groups("stays"),
        *of_former_groups("goes", runPolicy=fails),
    )
    submit_launcher_jobs(kubectl)


def submit_launcher_jobs(kubectl: Kubectl) -> None:
    """Create MPIJobs of v2beta1: suspended, with a taken launcher's name, and one that restarts."""
    template = mpi.job("", "true")["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    taken = {"metadata": {"name": "named-launcher"}, "apiVersion": "batch/v1", "kind": "Job"}
    kubectl.apply({**taken, "spec": {"suspend": True, "template": template}})
    kubectl.apply(
        *(mpi.job(name, "true", runPolicy={"suspend": True}) for name in ("held", "named")),
        restarting_mpi_job(),
    )


def restarting_mpi_job() -> JSON:
    """Return an MPIJob of v2beta1 whose policy restarts it once, with its launcher's Job."""
    job = mpi.job("restarts", "exit 3", runPolicy={"failurePolicy": {"maxRestarts": 1}})
    specs = job["spec"]["mpiReplicaSpecs"]
    specs["Launcher"]["template"]["spec"]["containers"][0]["image"] = jobs.IMAGE
    specs["Worker"]["template"]["spec"] |= UNSCHEDULABLE
    return job


def list_form(kind: str, map_field: str, type_field: str) -> JSON:
    """Return a job in its kind's early list form, into which the RuntimeId is written."""
    spec = kubeflow.BY_NAME[kind].job("", ["true"], pod=UNSCHEDULABLE)["spec"]
    template = spec[map_field]["Worker"]["template"]
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "first"},
        "spec": {"replicaSpecs": [{type_field: "MASTER", "template": template}]},
    }


def of_former_groups(name: str, **spec: Any) -> list[JSON]:
    """Return a job of each kind of a former group, with a name unlike those of Kubeflow's."""
    name = f"former-{name}"
    first = list_form("TFJob", "tfReplicaSpecs", "tfReplicaType")
    xgboost = kubeflow.BY_NAME["XGBoostJob"].job("", ["true"], pod=UNSCHEDULABLE)
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name},
            "spec": {**job["spec"], **spec},
        }
        for api_version, kind, job in (
            ("tensorflow.org/v1alpha1", "TfJob", first),
            ("xgboostjob.kubeflow.org/v1", "XGBoostJob", xgboost),
        )
    ]


def elastic(kind: kubeflow.KubeflowKind) -> JSON:
    if kind.name != "PyTorchJob":
        return {}
    target = {"type": "Utilization", "averageUtilization": 80}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    return {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}}


def have_taken_over(kubectl: Kubectl) -> None:
    """Create children as another operator leaves them, for jobs that are still gated."""
    mpi, pytorch = kubeflow.BY_NAME["MPIJob"], kubeflow.BY_NAME["PyTorchJob"]
    held = {"runPolicy": {"suspend": True}}
    kubectl.apply(
        mpi.job("taken", ["true"], pod=UNSCHEDULABLE, **held),
        pytorch.job("taken", ["true"], pod=UNSCHEDULABLE, **held, **elastic(pytorch)),
    )
    owners = [await_suspended(kubectl, kind) for kind in (mpi, pytorch)]
    launcher, files = {"name": "taken-mpi-launcher"}, {"name": "taken-mpi-config"}
    worker = {"name": "taken-pytorch-worker-0"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", **launcher}
    scaled = {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "name": "taken-pytorch"}
    template = pytorch.job("taken", ["true"], pod=UNSCHEDULABLE)["spec"]["pytorchReplicaSpecs"][
        "Worker"
    ]
    kubectl.apply(
        owned(owners[0], "v1", "ServiceAccount", launcher),
        owned(owners[0], "v1", "ConfigMap", files),
        owned(owners[0], "rbac.authorization.k8s.io/v1", "Role", launcher),
        owned(owners[0], "rbac.authorization.k8s.io/v1", "RoleBinding", launcher, roleRef=role),
        owned(
            owners[1],
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            {"name": "taken-pytorch"},
            spec={"scaleTargetRef": scaled, "maxReplicas": 2},
        ),
        owned(owners[1], "v1", "Service", worker, spec={"clusterIP": "None"}),
        owned(owners[1], "v1", "Pod", worker, **template["template"]),
    )
    for kind in (mpi, pytorch):
        resume = '{"spec": {"runPolicy": {"suspend": false}}}'
        kubectl("patch", kind.resource, kind.called("taken"), "--type=merge", "-p", resume)


def await_suspended(kubectl: Kubectl, kind: kubeflow.KubeflowKind) -> JSON:
    def probe() -> JSON | None:
        job = kubectl.get(kind.resource, kind.called("taken")) or {}
        return job if "Suspended" in kubeflow.true_conditions(job.get("status") or {}) else None

    return kubectl.until(probe, within_s=30, what=f"the {kind.name} to be suspended")


def owned(owner: JSON, api_version: str, kind: str, metadata: JSON, **fields: Any) -> JSON:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {**metadata, "ownerReferences": [reference]}
    return {"apiVersion": api_version, "kind": kind, **fields, "metadata": metadata}


def await_launcher_jobs(kubectl: Kubectl) -> None:
    """Wait for the launchers' Jobs; the one that was suspended resumes, without a node for it."""
    created = partial(kubectl.get, "job", "held-launcher")
    kubectl.until(created, within_s=60, what="the Job of a launcher")
    nowhere = {
        "Launcher": {"template": {"spec": UNSCHEDULABLE}},
        "Worker": {"template": {"spec": UNSCHEDULABLE}},
    }
    patch = {"mpiReplicaSpecs": nowhere, "runPolicy": {"suspend": False}}
    mpi.patch(kubectl, "held", json.dumps(patch))

    def resumed() -> bool:
        found = kubectl.get("job", "held-launcher") or {"spec": {"suspend": True}}
        return not found["spec"]["suspend"]

    kubectl.until(resumed, within_s=60, what="the Job of a launcher to be resumed")
    mpi.reached(kubectl, "restarts", "Failed")
    assert len(mpi.status(kubectl, "restarts")["dlctl"]["attempts"]) == 2
    kubectl.until(
        lambda: any(e["reason"] == "ErrResourceExists" for e in kubectl.items("events")),
        within_s=60,
        what="an event about the taken name of a launcher",
    )


def await_all(kubectl: Kubectl) -> None:
    await_launcher_jobs(kubectl)
    for resource, name in (
        *((kind.resource, kind.called("goes")) for kind in kubeflow.KINDS),
        *((resource, "former-goes") for resource in FORMER_GROUPS),
    ):
        gone = partial(is_gone, kubectl, resource, name)
        kubectl.until(gone, within_s=60, what=f"{name} of {resource} to be deleted")
    cleaned = partial(is_cleaned, kubectl)
    kubectl.until(cleaned, within_s=60, what="the children of a large job to be deleted")
    for resource, name in (
        ("serviceaccounts", "taken-mpi-launcher"),
        ("configmaps", "taken-mpi-config"),
        ("roles", "taken-mpi-launcher"),
        ("rolebindings", "taken-mpi-launcher"),
        ("hpa", "taken-pytorch"),
        ("services", "taken-pytorch-worker-0"),
        ("pods", "taken-pytorch-worker-0"),
    ):
        kubectl.until(
            partial(is_taken, kubectl, resource, name),
            within_s=60,
            what=f"{name} of {resource} to be taken over",
        )


def is_cleaned(kubectl: Kubectl) -> bool:
    job = kubectl.get(MANY.resource, MANY.called("many")) or {}
    label = f"training.kubeflow.org/job-name={MANY.called('many')}"
    failed = "Failed" in kubeflow.true_conditions(job.get("status") or {})
    return failed and not kubectl("get", "pods,services", "-o", "name", "-l", label)


def is_gone(kubectl: Kubectl, resource: str, name: str) -> bool:
    return kubectl.get(resource, name) is None


def is_taken(kubectl: Kubectl, resource: str, name: str) -> bool:
    ours = "dlctl.dev/managed-by=dlctl"
    return name in kubectl("get", resource, "-o", "name", "-l", ours)

"""What the benchmark creates: jobs, and the pods and services of the plain writers."""

from typing import Final

from dlctl.api.json_types import JSON

PYTORCH_JOBS: Final = "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"
TRAINING_JOBS: Final = "/apis/kai.alibabacloud.com/v1alpha1/namespaces/{}/trainingjobs"
MPI_JOBS: Final = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
JOB_COLLECTIONS: Final = (PYTORCH_JOBS, TRAINING_JOBS, MPI_JOBS)
# The path of the pods that run, in that of their namespace.
RUNNING_PODS: Final = "pods?fieldSelector=status.phase%3DRunning"
# On the pods of both operators.
JOB_LABEL: Final = "training.kubeflow.org/job-name"


def pytorch_job(name: str, replicas: int, run_policy: JSON | None = None) -> JSON:
    replica = {"restartPolicy": "OnFailure", "template": {"spec": _pod_spec("pytorch")}}
    specs = {"Master": {"replicas": 1, **replica}}
    if replicas > 1:
        specs["Worker"] = {"replicas": replicas - 1, **replica}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs, "runPolicy": run_policy or {}},
    }


def training_job(name: str, ranks: int) -> JSON:
    """Return a job that is restarted as a whole when its launcher, one of the ranks, is killed."""
    template = {"spec": _pod_spec("main")}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "OnFailure",
            "backoffLimit": 3,
            # No rank has an sshd that could be probed.
            "launcherAttachMode": "kubexec",
            "etReplicaSpecs": {
                "launcher": {"replicas": 1, "template": template},
                "worker": {"replicas": ranks - 1, "template": template},
            },
        },
    }


def mpi_job(name: str, workers: int) -> JSON:
    """Return a job whose launcher no node takes: kwok would end it at once, as a pod of a Job."""
    launcher = {**_pod_spec("main"), "nodeSelector": {"bench": "none"}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": launcher}},
                "Worker": {"replicas": workers, "template": {"spec": _pod_spec("main")}},
            }
        },
    }


def plain_pod(number: int) -> JSON:
    labels = {"app": "bench", "number": str(number)}
    return {"metadata": {"name": f"plain-{number}", "labels": labels}, "spec": _pod_spec("plain")}


def plain_service(number: int) -> JSON:
    spec = {"clusterIP": "None", "selector": {"number": str(number)}, "ports": [{"port": 23456}]}
    return {"metadata": {"name": f"plain-{number}"}, "spec": spec}


def _pod_spec(container: str) -> JSON:
    return {"containers": [{"name": container, "image": "busybox", "command": ["sleep", "36000"]}]}

"""The situations in which a job waits, each with its reason and its sentence."""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from tests.builders import mxjob, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.integration.waiting_acts import (
    COLLECTED,
    NODE,
    Situation,
    bound,
    container,
    fail_worker,
    forbidden,
    keep_by_finalizer,
    lose_node,
    nothing,
    pytorch_job,
    refuse_gang,
    rejecting,
    start_one_worker,
    start_unready_workers,
    take_name,
    unscheduled,
    waits,
    with_scheduler,
)
from tests.integration.waiting_kueue_situations import KUEUE_SITUATIONS, SUSPENDED
from tests.mpi_v2beta1 import mpi_job

ONE: Final = "worker-0 (1 of 2 replicas) waits: "
SERVERS: Final = "admission is simulated"
INIT: Final[JSON] = {"initContainers": [{"name": "fetch", "image": "fetch:1"}]}
SITUATIONS: Final = {
    "suspended": Situation(
        "Suspended",
        "the job is suspended: `dlctl resume pytorchjob/linear` starts it",
        pytorch_job(SUSPENDED),
        nothing,
    ),
    **KUEUE_SITUATIONS,
    "kueue gates its pods": Situation(
        "QueuedByKueue",
        "master-0, worker-0 (2 of 2 replicas) wait: Kueue has not admitted the pod",
        pytorch_job(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        nothing,
    ),
    "gated by others": Situation(
        "SchedulingGated",
        "master-0, worker-0 (2 of 2 replicas) wait: the scheduling gate example.com/data holds the "
        "pod until its owner removes it",
        pytorch_job(schedulingGates=[{"name": "example.com/data"}]),
        nothing,
    ),
    "gang without room": Situation(
        "PodGroupNotAdmitted",
        "PodGroup default/linear is not admitted by volcano",
        pytorch_job(),
        nothing,
        gangs="volcano",
    ),
    "gang without nodes": Situation(
        "PodGroupNotAdmitted",
        "PodGroup default/linear is not admitted by volcano: 2/0 tasks in gang unschedulable",
        pytorch_job(),
        refuse_gang,
        gangs="volcano",
    ),
    "quota exceeded": Situation(
        "QuotaExceeded",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: exceeded quota: '
        "gpus, requested: pods=1, used: pods=2, limited: pods=2; it is tried again until the quota "
        "has room",
        pytorch_job(),
        nothing,
        before=forbidden("exceeded quota: gpus, requested: pods=1, used: pods=2, limited: pods=2"),
        embedded=SERVERS,
    ),
    "pod security": Situation(
        "PodSecurityDenied",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: violates '
        'PodSecurity "restricted:latest": privileged; change the template or the '
        "namespace's level",
        pytorch_job(),
        nothing,
        before=forbidden('violates PodSecurity "restricted:latest": privileged'),
        embedded=SERVERS,
    ),
    "service account": Situation(
        "ServiceAccountNotFound",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: error looking up '
        'service account default/trainer: serviceaccount "trainer" not found; create it or name '
        "another",
        pytorch_job(),
        nothing,
        before=forbidden(
            'error looking up service account default/trainer: serviceaccount "trainer" not found'
        ),
        embedded=SERVERS,
    ),
    "not authorized": Situation(
        "Forbidden",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: User "dlctl" '
        "cannot create resource; the rights of dlctl and the admission plugins decide",
        pytorch_job(),
        nothing,
        before=forbidden('User "dlctl" cannot create resource'),
        embedded=SERVERS,
    ),
    "webhook denies": Situation(
        "WebhookDenied",
        'pod linear-master-0 is rejected: admission webhook "policy.example.com" denied the '
        "request: no team label; the webhook's owner decides what it accepts",
        pytorch_job(),
        nothing,
        before=rejecting(
            StatusError(
                400,
                "BadRequest",
                'admission webhook "policy.example.com" denied the request: no team label',
            )
        ),
        embedded=SERVERS,
    ),
    "webhook fails": Situation(
        "WebhookFailed",
        "pod linear-master-0 is rejected: Internal error occurred: failed calling webhook "
        '"policy.example.com": connection refused; the webhook does not answer as it should',
        pytorch_job(),
        nothing,
        before=rejecting(
            StatusError(
                500,
                "InternalError",
                'Internal error occurred: failed calling webhook "policy.example.com": connection '
                "refused",
            )
        ),
        embedded=SERVERS,
    ),
    "name taken": Situation(
        "NameTaken",
        "the name of pod linear-worker-0 is taken: the existing object belongs to no controller; "
        "delete that object or rename the job",
        pytorch_job(),
        nothing,
        before=take_name,
    ),
    "back-off": Situation(
        "RestartBackOff",
        f"{ONE}ended with exit code 137 (killed (SIGKILL): out of memory, evicted or "
        "force-deleted) and restarts at TIME, after 1 attempt",
        pytorch_job(),
        fail_worker,
        options=Options(restart_backoff_s=60.0),
    ),
    "no node": Situation(
        "Unschedulable",
        f"{ONE}no node fits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        pytorch_job(),
        unscheduled("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    ),
    "volume not bound": Situation(
        "VolumeNotBound",
        f"{ONE}no node fits: 0/3 nodes are available: pod has unbound immediate "
        "PersistentVolumeClaims",
        pytorch_job(),
        unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
    ),
    "no scheduler": Situation(
        "NotScheduled",
        "master-0, worker-0 (2 of 2 replicas) wait: no scheduler has picked up the pod: check that "
        "the one in schedulerName is running",
        pytorch_job(),
        nothing,
    ),
    "image not pulled": Situation(
        "ImagePullFailed",
        f"{ONE}image mxnet:1 cannot be pulled: check its name and tag, the registry and "
        "imagePullSecrets",
        pytorch_job(),
        bound(**waits("ImagePullBackOff", 'Back-off pulling image "mxnet:1"')),
    ),
    "image never pulled": Situation(
        "ErrImageNeverPull",
        f"{ONE}image mxnet:1 is not on node {NODE} and must not be pulled",
        pytorch_job(),
        bound(**waits("ErrImageNeverPull")),
    ),
    "image name": Situation(
        "InvalidImageName",
        f"{ONE}mxnet:1 is not a valid image name",
        pytorch_job(),
        bound(**waits("InvalidImageName", "couldn't parse image name")),
    ),
    "missing ConfigMap": Situation(
        "CreateContainerConfigError",
        f'{ONE}container pytorch cannot be configured: configmap "settings" not found',
        pytorch_job(),
        bound(**waits("CreateContainerConfigError", 'configmap "settings" not found')),
    ),
    "missing key of a Secret": Situation(
        "CreateContainerConfigError",
        f"{ONE}container pytorch cannot be configured: couldn't find key token in Secret "
        "default/s3",
        pytorch_job(),
        bound(
            **waits("CreateContainerConfigError", "couldn't find key token in Secret default/s3")
        ),
    ),
    "container not created": Situation(
        "CreateContainerError",
        f"{ONE}container pytorch cannot be created: failed to generate container spec",
        pytorch_job(),
        bound(**waits("CreateContainerError", "failed to generate container spec")),
    ),
    "crash loop": Situation(
        "CrashLoopBackOff",
        f"{ONE}container pytorch keeps exiting, the last time with exit code 1 (general error)",
        pytorch_job(),
        bound(
            **waits(
                "CrashLoopBackOff",
                "back-off 40s restarting failed container",
                restartCount=3,
                lastState={"terminated": {"exitCode": 1, "reason": "Error"}},
            )
        ),
    ),
    "image of an init container": Situation(
        "ImagePullFailed",
        f"{ONE}image fetch:1 cannot be pulled: check its name and tag, the registry and "
        "imagePullSecrets",
        pytorch_job(**INIT),
        bound(
            initContainerStatuses=[container("fetch", {"waiting": {"reason": "ErrImagePull"}})],
            **waits("PodInitializing"),
        ),
    ),
    "init container runs": Situation(
        "InitContainerRunning",
        f"{ONE}init container fetch runs",
        pytorch_job(**INIT),
        bound(
            initContainerStatuses=[container("fetch", {"running": {}})],
            **waits("PodInitializing"),
        ),
        embedded=COLLECTED,
    ),
    "container being created": Situation(
        "ContainerCreating",
        f"{ONE}the containers are being created on node {NODE}, which includes pulling images and "
        "mounting volumes",
        pytorch_job(),
        bound(**waits("ContainerCreating")),
        embedded=COLLECTED,
    ),
    "kubelet silent": Situation(
        "KubeletSilent",
        f"{ONE}the kubelet of node {NODE} has not reported on the pod",
        pytorch_job(),
        bound(),
        embedded=COLLECTED,
    ),
    "pod on a lost node": Situation(
        "PodTerminating",
        f"{ONE}the previous pod is still being deleted on node {NODE}: if the node is lost, give "
        "it the taint node.kubernetes.io/out-of-service",
        pytorch_job(),
        lose_node,
        embedded=COLLECTED,
    ),
    "pod with a finalizer": Situation(
        "PodTerminating",
        f"{ONE}the previous pod is deleted but kept by the finalizer example.com/keep",
        pytorch_job(),
        keep_by_finalizer,
    ),
    "launcher waits for workers that run": Situation(
        "WaitingForReplicas",
        (
            "launcher-0 (1 of 3 replicas) waits: starts once the other 2 replicas are running; "
            "not yet: worker-1"
        ),
        with_scheduler(training_job("MPIJob", Launcher=1, Worker=2)),
        start_one_worker,
        embedded=COLLECTED,
    ),
    "launcher waits for workers that are ready": Situation(
        "WaitingForReplicas",
        "launcher-0 (1 of 3 replicas) waits: starts once the other 2 replicas are ready; not yet: "
        "worker-0, worker-1",
        with_scheduler(mpi_job(2, name="linear", launcherCreationPolicy="WaitForWorkersReady")),
        start_unready_workers,
        embedded=COLLECTED,
    ),
    "elastic job": Situation(
        "Unschedulable",
        "worker-0 (1 of 3 replicas) waits: no node fits: 0/3 nodes are available",
        with_scheduler(elastic_job(name="linear", worker={"replicas": 2})),
        unscheduled("0/3 nodes are available."),
    ),
    "list form": Situation(
        "Unschedulable",
        "worker-0 (1 of 4 replicas) waits: no node fits: 0/3 nodes are available",
        with_scheduler(mxjob(group="fioravanzo.org", RuntimeId="abcd")),
        unscheduled("0/3 nodes are available.", "linear-worker-abcd-0"),
    ),
}

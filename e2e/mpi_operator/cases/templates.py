"""What users put into pod templates, which has to be on their pods."""

from typing import Any, Final

from dlctl.frameworks.kubeflow.mpi_ssh_pods import DEFAULT_SSH_PATH
from e2e.mpi_operator.case import IMAGE, Case, launcher, mpijob, replicas
from e2e.mpi_operator.steps import launcher_runs, workers_run

_STARTS: Final = (workers_run(), launcher_runs())
_SIDECAR: Final = {"name": "sidecar", "image": "side:1"}
_MAIN: Final = {"name": "main", "image": IMAGE}


def both(name: str, **fields: Any) -> Case:
    """Return a case whose launcher and workers have the same fields."""
    return Case(mpijob(name, replicas(2, **fields), launcher(**fields)), _STARTS)


_VOLUMES: Final = [{"name": "data", "emptyDir": {}}, {"name": "more", "emptyDir": {}}]
_MOUNTS: Final = [{"name": "data", "mountPath": "/data"}]
_GPUS: Final = {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}, "requests": {"cpu": "500m"}}
_TOLERATION: Final = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
_AFFINITY: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}
_MINE: Final = {"name": "MINE", "value": "1"}
_ENVIRONMENT: Final = [
    _MINE,
    {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "false"},
    {"name": "K_MPI_JOB_ROLE", "value": "mine"},
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
]
_PROBE: Final = {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 2}

CASES: Final = (
    Case(mpijob("worker-command", replicas(2, container={"command": ["/start-sshd"]})), _STARTS),
    Case(mpijob("worker-args", replicas(2, container={"args": ["sleep"]})), _STARTS),
    Case(
        mpijob("worker-both", replicas(1, container={"command": ["/init"], "args": ["sshd"]})),
        _STARTS,
    ),
    Case(mpijob("launcher-args", 1, replicas(container={"args": ["mpirun", "a"]})), _STARTS),
    Case(mpijob("launcher-bare", 1, replicas()), _STARTS),
    both("environment", container={"env": _ENVIRONMENT}),
    both("same-variable", container={"env": [_MINE, _MINE]}),
    both("port", container={"ports": [{"name": "ssh", "containerPort": 2222}]}),
    both("volumes", volumes=_VOLUMES, container={"volumeMounts": _MOUNTS}),
    both("sidecars", containers=[{**_MAIN, "command": ["a"]}, _SIDECAR]),
    both("init-containers", initContainers=[{"name": "fetch", "image": "fetch:1"}]),
    both(
        "native-sidecar",
        initContainers=[{"name": "log", "image": "log:1", "restartPolicy": "Always"}],
    ),
    both("dns-config", dnsConfig={"searches": ["example.com"], "options": [{"name": "ndots"}]}),
    both("dns-policy", dnsPolicy="Default"),
    both("host-network", hostNetwork=True),
    both("host-network-dns", hostNetwork=True, dnsPolicy="Default"),
    both(
        "template-metadata",
        metadata={
            "name": "mine",
            "labels": {"team": "a", "training.kubeflow.org/job-role": "mine", "app": "mine"},
            "annotations": {"sidecar.istio.io/inject": "false"},
        },
    ),
    both("node-selector", nodeSelector={"gpu": "a100"}, tolerations=[_TOLERATION]),
    both("affinity", affinity=_AFFINITY),
    both("resources", container={"resources": _GPUS}),
    both(
        "non-root",
        securityContext={"fsGroup": 1000},
        container={"securityContext": {"runAsUser": 1000}},
    ),
    both("service-account", serviceAccountName="default", automountServiceAccountToken=False),
    both("scheduler-name", schedulerName="mine"),
    both("pod-restart-policy", restartPolicy="Always"),
    both("hostname", hostname="mine", subdomain="mine"),
    both("grace", terminationGracePeriodSeconds=5, activeDeadlineSeconds=600),
    both(
        "image-pull",
        imagePullSecrets=[{"name": "registry"}],
        container={"imagePullPolicy": "Never"},
    ),
    both("host-ipc", hostIPC=True, shareProcessNamespace=False, enableServiceLinks=False),
    both("gated", schedulingGates=[{"name": "example.com/quota"}]),
    both(
        "mount-clash",
        container={"volumeMounts": [{"name": "ssh", "mountPath": DEFAULT_SSH_PATH}]},
        volumes=[{"name": "ssh", "emptyDir": {}}],
    ),
    both("volume-clash", volumes=[{"name": "ssh-auth", "emptyDir": {}}]),
    both(
        "unknown-field",
        container={"gpus": 1},
    ),
    Case(
        mpijob("probed", replicas(2, container={"readinessProbe": _PROBE})),
        _STARTS,
    ),
    *(
        Case(
            mpijob(
                f"restart-{ours}-{theirs}".lower(),
                replicas(1, restart=theirs),
                launcher(restart=ours),
            ),
            _STARTS,
        )
        for ours, theirs in (("Never", "Never"), ("OnFailure", "OnFailure"), ("Never", "OnFailure"))
    ),
)

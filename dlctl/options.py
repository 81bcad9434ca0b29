"""The controller's settings: one field per flag, with its default and help text.

Durations are in seconds. Invalid settings are rejected before anything starts.
"""

import re
from typing import Any, Final

import attrs

from dlctl.errors import ConfigError

# A ConfigMap may be mounted there; it is optional.
INIT_TEMPLATE_FILE: Final = "/etc/config/initContainer.yaml"
_DEFAULT_ADDRESS: Final = ":8080"
MAX_FAILURE_LOG_TAILS: Final = 32
# Restarts are counted by the attempts in the status, which lists one more.
MAX_RESTARTS_PER_HOUR: Final = 19
# Set by cluster autoscalers, by handlers of spot instances and maintenance, and by Kubernetes for
# nodes that do not answer.
NODE_DRAIN_SIGNALS: Final = (
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "cloud.google.com/impending-node-termination",
    "cloud.google.com/active-node-maintenance=ONGOING",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/out-of-service",
    "PreemptScheduled",
    "TerminateScheduled",
    "RebootScheduled",
    "RedeployScheduled",
)
# Set by node-problem-detector, by the agents of EKS and AKS, and by NVSentinel.
NODE_FAULT_SIGNALS: Final = (
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "CperHardwareErrorFatal",
    "XfsShutdown",
    "AcceleratedHardwareReady=False",
    "NetworkingReady=False",
    "StorageReady=False",
    "KernelReady=False",
    "ContainerRuntimeReady=False",
    "GPUMissing",
    "NVLinkStatusInactive",
    "XIDErrors",
    "IBLinkFlapping",
    "GpuMemWatch",
    "GpuThermalWatch",
    "GpuPcieWatch",
    "GpuPowerWatch",
    "GpuInforomWatch",
    "GpuSmWatch",
    "GpuNvlinkWatch",
    "GpuMcuWatch",
    "GpuPmuWatch",
    "GpuDriverWatch",
    "SysLogsXIDError",
    "SysLogsSXIDError",
    "SysLogsGPUFallenOff",
    "NVSwitchFatalError",
    "NVSwitchDown",
)
_SIGNAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*(=[A-Za-z0-9._-]+)?")
_DISABLED: Final = "0"


def _setting(default: Any, help_: str, *, topic: str = "", choices: tuple[str, ...] = ()) -> Any:
    """Return a field; ``topic`` starts a group of the settings that follow."""
    metadata = {"help": help_, "topic": topic, "choices": choices}
    return attrs.field(default=default, metadata=metadata)


@attrs.frozen(kw_only=True)
class Options:
    """All settings of the controller."""

    kubeconfig: str = _setting(
        "", "kubeconfig file; default: $KUBECONFIG, else the pod's service account", topic="Scope"
    )
    context: str = _setting("", "kubeconfig context; default: the current one")
    namespace: str = _setting("", "watch only this namespace; default: all")
    enable_scheme: tuple[str, ...] = _setting(
        (), "serve only these kinds, such as tfjob; repeat the flag or separate them by commas"
    )
    cluster_domain: str = _setting(
        "",
        "DNS domain of the cluster, appended to replica addresses; empty keeps short names",
    )
    reconcile_timeout_s: float = _setting(
        120.0, "cancel and retry a reconcile after this many seconds", topic="Throughput"
    )
    kube_api_qps: float = _setting(
        0.0, "limit of requests per second to the API server; 0 disables it"
    )
    kube_api_burst: int = _setting(
        0, "requests that may exceed --kube-api-qps in a burst; 0: one second's worth"
    )
    per_child_events: bool = _setting(
        False,
        "record an event for each of a few created or deleted children, as training-operator does, "
        "instead of one for all",
    )
    restart_backoff_s: float = _setting(
        10.0,
        "seconds before a failed or lost replica restarts; doubles with each restart",
        topic="Restarts",
    )
    restart_backoff_cap_s: float = _setting(300.0, "longest restart back-off in seconds")
    restart_backoff_reset_s: float = _setting(
        600.0, "reset the restart back-off after a replica has run this many seconds"
    )
    max_infrastructure_restarts_per_hour: int = _setting(
        10,
        "restarts of a job with a failurePolicy within an hour for causes that are not the user's; "
        "0: no limit",
    )
    failure_log_tails: int = _setting(
        0,
        "pods, of those that failed first in an attempt, whose end of the log is read for the "
        f"verdict, at most {MAX_FAILURE_LOG_TAILS}; needs the right to get pods/log; 0 disables it",
    )
    force_delete_after_s: float = _setting(
        0.0,
        "force-delete pods this many seconds past their deletionTimestamp, or after their node has "
        "fallen silent; 0 disables it",
    )
    node_drain_signals: tuple[str, ...] = _setting(
        NODE_DRAIN_SIGNALS,
        "signals that a node is about to go: taints by key, conditions by Type if they are True, "
        "else by Type=False, labels by key=value; empty disables it",
        topic="Nodes",
    )
    node_fault_signals: tuple[str, ...] = _setting(
        NODE_FAULT_SIGNALS,
        "signals that a node is at fault, in the same form; empty disables it",
    )
    max_avoided_nodes: int = _setting(
        3, "nodes at most that a pod avoids because they are charged or at fault; 0 disables it"
    )
    node_charge_ttl_s: float = _setting(
        86400.0, "seconds that the failure of an attempt is charged to its node"
    )
    taint_charged_nodes: bool = _setting(
        False,
        "put the taint dlctl.dev/charged:NoSchedule on a few nodes that several jobs have charged; "
        "needs the right to get and patch nodes",
    )
    gang_scheduler_name: str = _setting(
        "",
        "gang scheduler, which starts all replicas of a job or none: volcano, or the schedulerName "
        "of one with the coscheduling plugin; empty or none disables it",
        topic="Gangs and Kueue",
    )
    kueue_positions: bool = _setting(
        False,
        "say at which position of its cluster queue a job waits; needs the right to get "
        "localqueues/pendingworkloads",
    )
    pytorch_init_container_image: str = _setting(
        "alpine:3.10",
        "image of the init container in which PyTorch workers wait for the master",
        topic="PyTorchJob and MPIJob",
    )
    pytorch_init_container_template_file: str = _setting(
        INIT_TEMPLATE_FILE,
        "template of that init container; the default file is optional",
    )
    pytorch_init_container_max_tries: int = _setting(
        100, "DNS lookups of the master before that init container fails"
    )
    mpi_kubectl_delivery_image: str = _setting(
        "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest",
        "image that delivers kubectl to launchers of MPIJobs",
    )
    elastic_init_container_image: str = _setting(
        "alpine:3.10", "image of the init container of TrainingJob launchers", topic="TrainingJob"
    )
    elastic_start_after_s: float = _setting(
        120.0,
        "start a TrainingJob with its minimum of workers if not all are ready in this many seconds",
    )
    scale_in_timeout_s: float = _setting(
        60.0, "seconds a launcher has to disconnect from workers that a ScaleIn removes"
    )
    scale_out_timeout_s: float = _setting(
        600.0, "seconds new workers have to start, unless the ScaleOut sets a timeout"
    )
    scaler_ttl_s: float = _setting(
        86400.0, "delete a finished ScaleIn or ScaleOut after this many seconds; 0 keeps it"
    )
    max_concurrent_scaler_scripts: int = _setting(
        64, "concurrent scripts of ScaleIns and ScaleOuts, shared fairly between namespaces"
    )
    max_concurrent_launcher_execs: int = _setting(
        64,
        "other concurrent commands in launchers of TrainingJobs, such as host file updates, shared "
        "fairly between namespaces",
    )
    bind_address: str = _setting(
        _DEFAULT_ADDRESS,
        "address of /metrics, /healthz and /readyz; empty disables them",
        topic="Addresses",
    )
    metrics_bind_address: str = _setting(
        "", "address of /metrics, if not --bind-address; 0 disables it"
    )
    health_probe_bind_address: str = _setting(
        "", "address of /healthz and /readyz, if not --bind-address; 0 disables them"
    )
    metrics_authentication: bool = _setting(
        False, "require a bearer token that the API server authorizes for /metrics"
    )
    leader_elect: bool = _setting(
        False,
        "reconcile only while holding a Lease, so that several replicas can run",
        topic="Leader election",
    )
    leader_election_id: str = _setting("dlctl", "name of the Lease")
    leader_election_namespace: str = _setting(
        "", "namespace of the Lease; default: the controller's own"
    )
    leader_elect_lease_duration_s: float = _setting(
        15.0, "seconds without a renewal after which another replica may acquire the lease"
    )
    leader_elect_renew_deadline_s: float = _setting(
        10.0, "seconds without a renewal after which the leader exits"
    )
    leader_elect_retry_period_s: float = _setting(2.0, "seconds between renewals")
    leader_elect_stall_timeout_s: float = _setting(
        30.0, "seconds after which a leader with a blocked event loop stops renewing its lease"
    )
    graceful_shutdown_timeout_s: float = _setting(
        30.0,
        "seconds that running reconciles have to finish after SIGTERM",
        topic="Shutdown and logs",
    )
    log_format: str = _setting("json", "format of log records", choices=("json", "console"))
    log_level: str = _setting(
        "info", "lowest level that is logged", choices=("debug", "info", "warning", "error")
    )

    @property
    def metrics_address(self) -> str:
        """The address of the metrics endpoint, or empty."""
        return _address(self.metrics_bind_address, self.bind_address)

    @property
    def health_address(self) -> str:
        """The address of the health endpoints, or empty."""
        return _address(self.health_probe_bind_address, self.bind_address)

    def __attrs_post_init__(self) -> None:
        self._check_limits()
        self._check_scaling()
        self._check_nodes()
        self._check_addresses()
        if not self.leader_election_id:
            raise ConfigError("--leader-election-id is empty: set the name of a Lease")
        self._check_choices()

    def _check_limits(self) -> None:
        if not 0 < self.restart_backoff_s <= self.restart_backoff_cap_s:
            raise ConfigError(
                f"--restart-backoff is {self.restart_backoff_s:g}: set it above 0 and at most to "
                f"--restart-backoff-cap, which is {self.restart_backoff_cap_s:g}"
            )
        if self.reconcile_timeout_s <= 0:
            raise ConfigError("--reconcile-timeout must be above 0")
        if not 0 <= self.max_infrastructure_restarts_per_hour <= MAX_RESTARTS_PER_HOUR:
            raise ConfigError(
                "--max-infrastructure-restarts-per-hour must be between 0 and "
                f"{MAX_RESTARTS_PER_HOUR}"
            )
        if not 0 <= self.failure_log_tails <= MAX_FAILURE_LOG_TAILS:
            raise ConfigError(f"--failure-log-tails must be between 0 and {MAX_FAILURE_LOG_TAILS}")
        if self.force_delete_after_s < 0:
            raise ConfigError("--force-delete-after must be 0 or more")
        if self.graceful_shutdown_timeout_s < 0:
            raise ConfigError("--graceful-shutdown-timeout must be 0 or more")
        if self.kube_api_burst < 0:
            raise ConfigError("--kube-api-burst must be 0 or more")
        if self.pytorch_init_container_max_tries < 1:
            raise ConfigError("--pytorch-init-container-max-tries must be at least 1")

    def _check_scaling(self) -> None:
        if self.scaler_ttl_s < 0:
            raise ConfigError("--scaler-ttl must be 0 or more")
        if self.max_concurrent_scaler_scripts < 1:
            raise ConfigError("--max-concurrent-scaler-scripts must be at least 1")
        if self.max_concurrent_launcher_execs < 1:
            raise ConfigError("--max-concurrent-launcher-execs must be at least 1")

    def _check_nodes(self) -> None:
        if self.taint_charged_nodes and self.namespace:
            raise ConfigError(
                "--taint-charged-nodes is set, but a controller of one namespace watches no nodes: "
                "remove --namespace, or the other"
            )
        if self.max_avoided_nodes < 0:
            raise ConfigError("--max-avoided-nodes must be 0 or more")
        if self.node_charge_ttl_s <= 0:
            raise ConfigError("--node-charge-ttl must be above 0")
        for name in ("node_drain_signals", "node_fault_signals"):
            for entry in getattr(self, name):
                if not _SIGNAL.fullmatch(entry):
                    raise ConfigError(
                        f"{flag(name)} has the entry {entry!r}: use Name for a taint or a "
                        "condition that is True, Type=False for a condition with that status, "
                        "or key=value for a label"
                    )

    def _check_addresses(self) -> None:
        own = self.bind_address not in ("", _DEFAULT_ADDRESS)
        if own and self.metrics_bind_address and self.health_probe_bind_address:
            raise ConfigError(
                f"--bind-address {self.bind_address} is unused: --metrics-bind-address and "
                "--health-probe-bind-address override it; remove one of the three"
            )
        if self.metrics_authentication and not self.metrics_address:
            raise ConfigError(
                "--metrics-authentication is set, but metrics are disabled: "
                "set --metrics-bind-address"
            )

    def _check_choices(self) -> None:
        for field in attrs.fields(Options):
            value, choices = getattr(self, field.name), field.metadata["choices"]
            if choices and value not in choices:
                use = ", ".join(choices)
                raise ConfigError(f"{flag(field.name)} is {value!r}: use one of {use}")


def flag(field: str) -> str:
    """Return the flag of a field, without the unit suffix ``_s``, which the help states."""
    return "--" + field.removesuffix("_s").replace("_", "-")


def _address(own: str, shared: str) -> str:
    if own.isdecimal() and own != _DISABLED:
        # A port alone, as mpi-operator has it.
        return f":{own}"
    return "" if own == _DISABLED else own or shared

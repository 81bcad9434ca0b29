"""The controller's settings: one field, one flag, with its default and what it means.

Durations are seconds. A setting that makes no sense is refused here, before anything starts.
"""

from typing import Any, Final

import attrs

from dlctl.errors import ConfigError

# A ConfigMap may be mounted there; where none is, nothing is missing.
INIT_TEMPLATE_FILE: Final = "/etc/config/initContainer.yaml"
_DEFAULT_ADDRESS: Final = ":8080"
# What cluster autoscalers and the handlers of spot instances say.
NODE_DRAIN_SIGNALS: Final = (
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "PreemptScheduled",
    "TerminateScheduled",
)
_DISABLED: Final = "0"


def _setting(default: Any, help_: str) -> Any:
    return attrs.field(default=default, metadata={"help": help_})


@attrs.frozen(kw_only=True)
class Options:
    """Everything that can be set about the controller."""

    kubeconfig: str = _setting("", "file, instead of $KUBECONFIG or the pod's own account")
    context: str = _setting("", "context of the kubeconfig, instead of its current one")
    namespace: str = _setting("", "watch this namespace alone, not all of them")
    enable_scheme: tuple[str, ...] = _setting(
        (), "serve these kinds alone, such as tfjob; repeat the flag, or separate them by commas"
    )
    workers: int = _setting(4, "reconciliations at a time, for each kind")
    reconcile_timeout_s: float = _setting(
        120.0, "seconds after which a reconciliation is cancelled and tried again"
    )
    restart_backoff_s: float = _setting(
        10.0, "seconds until a replica that was lost runs again; doubled each time"
    )
    restart_backoff_cap_s: float = _setting(300.0, "longest such wait in seconds")
    restart_backoff_reset_s: float = _setting(
        600.0, "seconds of running after which the wait starts anew"
    )
    force_delete_after_s: float = _setting(
        0.0, "seconds that a pod may stay after it was to be gone, as on a dead node; 0 for ever"
    )
    graceful_shutdown_timeout_s: float = _setting(
        30.0, "seconds that workers may go on after a SIGTERM"
    )
    kube_api_qps: float = _setting(
        0.0, "requests a second that may be sent to the API server; 0 for as many as it takes"
    )
    kube_api_burst: int = _setting(
        0, "requests that may be sent at once after a pause; 0 for those of one second"
    )
    cluster_domain: str = _setting(
        "",
        "DNS domain of the cluster, to complete the names of replicas with; empty for short ones",
    )
    gang_scheduler_name: str = _setting(
        "",
        "scheduler that starts all replicas of a job or none: volcano, or the name of one with the "
        "coscheduling plugin; empty or none for no such",
    )
    pytorch_init_container_image: str = _setting(
        "alpine:3.10", "image of the container that lets PyTorch workers wait for their master"
    )
    pytorch_init_container_template_file: str = _setting(
        INIT_TEMPLATE_FILE,
        "template of that container, instead of our own; the default file need not be there",
    )
    pytorch_init_container_max_tries: int = _setting(
        100, "how often that container looks for the master before it fails"
    )
    mpi_kubectl_delivery_image: str = _setting(
        "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest",
        "image that brings kubectl to launchers of MPI jobs",
    )
    elastic_init_container_image: str = _setting(
        "alpine:3.10", "image of the first step of a TrainingJob's launcher"
    )
    elastic_start_after_s: float = _setting(
        120.0,
        "seconds after which a TrainingJob starts with the least of its workers instead of all",
    )
    scale_in_timeout_s: float = _setting(
        60.0, "seconds that a launcher may go on using workers that a ScaleIn takes away"
    )
    scale_out_timeout_s: float = _setting(
        600.0, "seconds that new workers have to come, where a ScaleOut has no timeout of its own"
    )
    scaler_ttl_s: float = _setting(
        86400.0, "seconds after which a finished ScaleIn or ScaleOut is deleted; 0 keeps it"
    )
    max_concurrent_scaler_scripts: int = _setting(
        64, "scripts of ScaleIns and ScaleOuts that run at a time; namespaces share them fairly"
    )
    max_concurrent_launcher_execs: int = _setting(
        64,
        "other commands in launchers of TrainingJobs that run at a time, such as deliveries of "
        "hosts; namespaces share them fairly",
    )
    node_drain_signals: tuple[str, ...] = _setting(
        NODE_DRAIN_SIGNALS,
        "taints and conditions of nodes that are about to go, which workers of TrainingJobs leave "
        "in time; empty for none",
    )
    bind_address: str = _setting(
        _DEFAULT_ADDRESS, "where /metrics, /healthz and /readyz are served; empty for nowhere"
    )
    metrics_bind_address: str = _setting(
        "", "where /metrics is served, instead of at --bind-address; 0 for nowhere"
    )
    health_probe_bind_address: str = _setting(
        "", "where /healthz and /readyz are served, instead of at --bind-address; 0 for nowhere"
    )
    metrics_authentication: bool = _setting(
        False, "show /metrics only to those whose token the API server accepts for it"
    )
    leader_elect: bool = _setting(
        False, "work only while holding a Lease, so that several controllers can run"
    )
    leader_election_id: str = _setting("dlctl", "name of the Lease")
    leader_election_namespace: str = _setting("", "namespace of the Lease, instead of our own")
    leader_elect_lease_duration_s: float = _setting(
        15.0, "seconds without a renewal after which another controller takes the lease"
    )
    leader_elect_renew_deadline_s: float = _setting(
        10.0, "seconds without a renewal after which the leader ends itself"
    )
    leader_elect_retry_period_s: float = _setting(2.0, "seconds between two renewals")
    leader_elect_stall_timeout_s: float = _setting(
        30.0, "seconds after which a leader that hangs gives way, though it could renew the lease"
    )
    log_format: str = _setting("json", "json or console")
    log_level: str = _setting("info", "debug, info, warning or error")

    @property
    def metrics_address(self) -> str:
        """The address of the metrics, or nothing."""
        return _address(self.metrics_bind_address, self.bind_address)

    @property
    def health_address(self) -> str:
        """The address of the health endpoints, or nothing."""
        return _address(self.health_probe_bind_address, self.bind_address)

    def __attrs_post_init__(self) -> None:
        self._check_work()
        self._check_scaling()
        self._check_addresses()
        if not self.leader_election_id:
            raise ConfigError("--leader-election-id is empty: give the name of a Lease")
        _check_choice("--log-format", self.log_format, ("json", "console"))
        _check_choice("--log-level", self.log_level, ("debug", "info", "warning", "error"))

    def _check_work(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"--workers is {self.workers}: at least 1 is needed")
        if not 0 < self.restart_backoff_s <= self.restart_backoff_cap_s:
            raise ConfigError(
                f"--restart-backoff is {self.restart_backoff_s:g}: it must be above 0, and not "
                f"above --restart-backoff-cap, which is {self.restart_backoff_cap_s:g}"
            )
        if self.reconcile_timeout_s <= 0:
            raise ConfigError("--reconcile-timeout must be above 0")
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

    def _check_addresses(self) -> None:
        own = self.bind_address not in ("", _DEFAULT_ADDRESS)
        if own and self.metrics_bind_address and self.health_probe_bind_address:
            raise ConfigError(
                f"--bind-address is {self.bind_address}, but --metrics-bind-address and "
                "--health-probe-bind-address leave nothing to serve there"
            )
        if self.metrics_authentication and not self.metrics_address:
            raise ConfigError("--metrics-authentication is given, but metrics are served nowhere")


def flag(field: str) -> str:
    """Return the flag of a field; that durations are seconds is said in its help."""
    return "--" + field.removesuffix("_s").replace("_", "-")


def _address(own: str, shared: str) -> str:
    return "" if own == _DISABLED else own or shared


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}: it must be one of {', '.join(choices)}")

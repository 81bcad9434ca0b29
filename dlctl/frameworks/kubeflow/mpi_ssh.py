"""MPI over SSH: mpirun in a launcher dials the sshd of each worker, as in mpi-operator's v2beta1.

The key, the host files and the headless service are those of its users' images.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from dlctl.api.job import LAUNCHER, LAUNCHER_REPLICA, WORKER, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import CONFIG_MAPS, SECRETS, SERVICES
from dlctl.api.objects.dependents import Dependent
from dlctl.frameworks import ssh_keys
from dlctl.frameworks.kubeflow import mpi_ssh_pods
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.kubeflow.mpi_config import DISCOVER_HOSTS, HOSTFILE, config_map_name
from dlctl.frameworks.kubeflow.mpi_implementations import MPIImplementation
from dlctl.frameworks.kubeflow.mpi_ssh_pods import DEFAULT_SSH_PATH, SSH_PATH_FIELD, SshVolume

_DEFAULT_DOMAIN: Final = "cluster.local"


class MPISSHJob(KubeflowJob):
    """Distributed MPI over SSH: the launcher determines the outcome; workers run sshd."""

    job_type = "MPIJob"
    replica_types = [LAUNCHER, WORKER]
    container_properties = {"name": "mpi", "ports": [22]}
    singletons = [LAUNCHER]
    dependent_resources = (CONFIG_MAPS,)
    # mpi-operator keeps them for scripts that look at an ended job.
    retained_resources = (SERVICES, CONFIG_MAPS)
    creates_secrets = True
    creates_launcher_jobs = True
    overrides_scheduler = True

    def success_policy(self) -> SuccessPolicy:
        return SuccessPolicy(
            success_replicas=(LAUNCHER_REPLICA,),
            running_replicas=(LAUNCHER_REPLICA, *self.replicas_of(WORKER)),
            all_run=True,
            # With a failure policy, it decides about workers as well.
            tolerated_types=frozenset() if self.job.has_failure_policy else frozenset({WORKER}),
        )

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        # Only first containers have variables, after the user's own of the same names.
        return {}

    def mutate_pod_spec(self, pod_spec: ReadOnlyJSON, replica: Replica) -> ReadOnlyJSON:
        if replica.type == WORKER:
            spec = mpi_ssh_pods.worker(pod_spec, search_domain=self._search_domain)
            return self._ssh_volume.add_to(spec)
        spec = mpi_ssh_pods.launcher(
            pod_spec,
            environment=self._implementation.launcher_environment(self._slots),
            sees_gpus=self.runs_launcher_as_worker,
        )
        return mpi_ssh_pods.with_config(self._ssh_volume.add_to(spec), self._config_map_name)

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Dependent]:
        first = [LAUNCHER_REPLICA] if self.runs_launcher_as_worker else []
        hosts = self._host_names([*first, *self.replicas_of(WORKER)])
        running_workers = sorted(replica for replica in running if replica.type == WORKER)
        lines = [f"echo {host}\n" for host in self._host_names([*first, *running_workers])]
        data = {
            HOSTFILE: self._implementation.hostfile(hosts, self._slots),
            DISCOVER_HOSTS: "".join(["#!/bin/sh\n", *lines]),
        }
        yield Dependent(CONFIG_MAPS, self._config_map_name, {**self._metadata, "data": data})

    def secrets(self) -> Iterator[Dependent]:
        private, public = ssh_keys.p521_pair()
        data = ssh_keys.secret_data(
            {
                mpi_ssh_pods.SECRET_PRIVATE_KEY: private,
                mpi_ssh_pods.SECRET_PUBLIC_KEY: public,
            }
        )
        body = {**self._metadata, "type": "kubernetes.io/ssh-auth", "data": data}
        yield Dependent(SECRETS, self._ssh_volume.secret, body)

    @property
    def runs_launcher_as_worker(self) -> bool:
        """Return whether processes run in the launcher, too."""
        return bool(self.job.spec.get("runLauncherAsWorker"))

    @property
    def _slots(self) -> int:
        slots = self.job.spec.get("slotsPerWorker")
        return 1 if slots is None else int(slots)

    @property
    def _implementation(self) -> MPIImplementation:
        named = self.job.spec.get("mpiImplementation")
        return MPIImplementation(named or MPIImplementation.OPEN_MPI)

    @property
    def _ssh_volume(self) -> SshVolume:
        path = self.job.spec.get(SSH_PATH_FIELD) or DEFAULT_SSH_PATH
        return SshVolume(f"{self.job.key.name}-ssh", path)

    def _host_names(self, replicas: Iterable[Replica]) -> Iterator[str]:
        """Return the names under the service, qualified up to the cluster's domain if it is set."""
        domain = self.job.defaults.cluster_domain
        suffix = ".".join([self.job.key.namespace, "svc", *([domain] if domain else [])])
        return (f"{self.address(each.type, each.index)}.{suffix}" for each in replicas)

    @property
    def _search_domain(self) -> str:
        domain = self.job.defaults.cluster_domain or _DEFAULT_DOMAIN
        return f"{self.job.shared_service}.{self.job.key.namespace}.svc.{domain}"

    @property
    def _config_map_name(self) -> str:
        return config_map_name(self.job.key.name)

    @property
    def _metadata(self) -> ReadOnlyJSON:
        return {"metadata": {"labels": {"app": self.job.key.name}}}

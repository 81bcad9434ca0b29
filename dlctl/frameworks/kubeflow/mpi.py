"""MPI: mpirun in a launcher starts processes in sleeping workers, with kubectl as remote shell.

The launcher's account, role and configuration files are dependents of the job.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dlctl.api.job import LAUNCHER, LAUNCHER_REPLICA, WORKER, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from dlctl.api.objects.dependents import Dependent
from dlctl.errors import InvalidJobError
from dlctl.frameworks import launcher_access
from dlctl.frameworks.kubeflow import mpi_config, mpi_pods
from dlctl.frameworks.kubeflow.job import KubeflowJob
from dlctl.frameworks.launcher_access import KubectlDelivery


class MPIJob(KubeflowJob):
    """Distributed MPI: the launcher determines the outcome; workers wait for its processes."""

    job_type = "MPIJob"
    replica_types = [LAUNCHER, WORKER]
    container_properties = {"name": "mpi", "ports": [9999]}
    singletons = [LAUNCHER]
    # In this order: a binding requires its role, and a pod its account.
    dependent_resources = (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, CONFIG_MAPS)
    retained_resources = dependent_resources
    delegated_rules = launcher_access.DELEGATED_RULES

    def success_policy(self) -> SuccessPolicy:
        return SuccessPolicy.of_chief(LAUNCHER_REPLICA)

    def is_master(self, replica: Replica) -> bool:
        return replica == LAUNCHER_REPLICA

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        # Only the launcher's first container has variables, in an order that depends on the user's.
        return {}

    def mutate_pod_spec(self, pod_spec: ReadOnlyJSON, replica: Replica) -> ReadOnlyJSON:
        if replica.type == WORKER:
            return mpi_pods.worker(pod_spec, self._config_map_name)
        account = {"serviceAccountName": self._named_account or self._launcher_name}
        kubectl = self.job.defaults.of_framework(KubectlDelivery)
        init_containers = [mpi_pods.kubectl_init_container(kubectl.image, self.job.key.namespace)]
        if self.job.is_gang_scheduled and self.job.replica_count(WORKER):
            init_containers.append(mpi_pods.wait_for_workers(pod_spec, self._launcher_name))
        return mpi_pods.launcher(
            {**account, **pod_spec, **account},
            self._config_map_name,
            init_containers=init_containers,
        )

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Dependent]:
        rules = launcher_access.role_rules(self._host_names(self._exec_targets(present)))
        yield from launcher_access.rbac(
            self.job.key, self._launcher_name, rules, service_account=self._named_account
        )
        metadata = {"labels": {"app": self.job.key.name}}
        files = {"metadata": metadata, "data": self._config_files(running)}
        yield Dependent(CONFIG_MAPS, self._config_map_name, files)

    def _exec_targets(self, present: Collection[Replica] | None) -> Sequence[Replica]:
        """Return the workers in which the launcher may run programs.

        Names without a pod of this job are excluded: another pod may have or get the name.
        """
        workers = list(self.replicas_of(WORKER))
        if present is None:
            return workers
        found = [worker for worker in workers if worker in present]
        done = self.job.status.completed_indexes(WORKER)
        complete = all(w in present or w.index in done for w in workers)
        # The launcher starts only after all workers exist: one write instead of one per worker.
        return found if complete or not self.job.status.phase.is_before_run else []

    def _config_files(self, running: Collection[Replica]) -> Mapping[str, str]:
        workers = self._host_names(self.replicas_of(WORKER))
        running_hosts = sorted(
            self._host_names(replica for replica in running if replica.type == WORKER)
        )
        if self.job.status.phase.is_before_run and len(running_hosts) < len(workers):
            # The file is not read before all workers run, so it is not updated for each of them. In
            # a gang the launcher's pod already exists and would see a later change too late.
            running_hosts = sorted(workers) if self.job.is_gang_scheduled else []
        return mpi_config.config_files(
            workers,
            running_hosts,
            launcher=self._launcher_name if mpi_pods.uses_gpu(self._launcher_pod_spec) else "",
            slots=_read_slots(self.job.spec.get("slotsPerWorker")),
            container=self.job.spec.get("mainContainer"),
        )

    def _host_names(self, replicas: Iterable[Replica]) -> list[str]:
        return [self.address(replica.type, replica.index) for replica in replicas]

    @property
    def _launcher_name(self) -> str:
        return self.address(LAUNCHER, 0)

    @property
    def _config_map_name(self) -> str:
        return mpi_config.config_map_name(self.job.key.name)

    @property
    def _launcher_pod_spec(self) -> ReadOnlyJSON:
        spec = self.job.replica_spec(LAUNCHER)
        return spec.template["spec"] if spec else {}

    @property
    def _named_account(self) -> str:
        """Return the account that the launcher's template names, or an empty string."""
        spec = self._launcher_pod_spec
        return str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "")


def _read_slots(given: Any) -> int:
    """Return the number of processes per worker, validated because it is written into scripts."""
    if given is None:
        return 1
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidJobError("must be an integer of 0 or more", field="spec.slotsPerWorker")
    return given

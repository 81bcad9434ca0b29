"""Elastic training: a launcher starts programs in workers that come and go while it runs.

The job's membership determines the workers and the hosts; nothing here chooses any.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from dlctl.api.job import LAUNCHER, WORKER, Replica, ReplicaSpec
from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS
from dlctl.api.objects.dependents import Dependent
from dlctl.api.policies.elasticity import AttachMode
from dlctl.errors import InvalidJobError
from dlctl.frameworks import launcher_access
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.horovod import config_files, hostfile_init, pod_specs
from dlctl.frameworks.horovod.ssh_access import SshAccess, secret_data

# The ports of a worker's service; launchers accept no connections.
SERVICE_PORTS: Final = {"ssh-port": 22, "kubeai-service-port": 9009}
_GPU_RESOURCE: Final = "nvidia.com/gpu"


class TrainingJob(DLJob):
    """Elastic Horovod, DeepSpeed or mpirun: the launcher determines the outcome."""

    job_type = "TrainingJob"
    replica_types = [LAUNCHER, WORKER]
    container_properties = {"ports": [SERVICE_PORTS["ssh-port"]]}
    chief_type = LAUNCHER
    singletons = [LAUNCHER]
    dependent_resources = (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, CONFIG_MAPS)
    retained_resources = dependent_resources
    creates_secrets = True
    # Not needed for launchers' own ConfigMaps: the controller can read all ConfigMaps.
    delegated_rules = launcher_access.DELEGATED_RULES

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        # Processes get their configuration from the launcher.
        return {}

    def mutate_pod_spec(self, pod_spec: ReadOnlyJSON, replica: Replica) -> ReadOnlyJSON:
        if replica.type == WORKER:
            spec = pod_specs.worker(pod_spec, uses_ssh=self._uses_ssh)
            return self._ssh_access.worker(spec) if self._uses_ssh else spec
        defaults = self.job.defaults
        spec = pod_specs.launcher(
            pod_spec, account=self._launcher_name, config=self._config_map_name
        )
        if self._uses_ssh:
            spec = self._ssh_access.launcher(spec)
        else:
            image = defaults.of_framework(launcher_access.KubectlDelivery).image
            spec = pod_specs.with_kubectl(spec, image=image, namespace=self.job.key.namespace)
        script = hostfile_init.init_script(uses_ssh=self._uses_ssh)
        image = defaults.of_framework(hostfile_init.HostfileInit).image
        return pod_specs.with_hostfile_init(spec, image=image, script=script)

    def dependents(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Dependent]:
        # Templates cannot name another account, so users create this one with pull secrets or a
        # cloud identity.
        yield from launcher_access.rbac(
            self.job.key, self._launcher_name, self._role_rules(present), account_may_exist=True
        )
        metadata = {"labels": {"app": self.job.key.name}}
        files = config_files.config_files(
            self._host_names(self._hosts), slots=self.slots, container=self._container_name
        )
        yield Dependent(CONFIG_MAPS, self._config_map_name, {"metadata": metadata, "data": files})

    def secrets(self) -> Iterator[Dependent]:
        if self._uses_ssh and self._ssh_access.creates_secret:
            data = secret_data(str(self.job.key))
            yield Dependent(SECRETS, self._ssh_access.secret, {"type": "Opaque", "data": data})

    def host_files(self) -> Mapping[str, str]:
        """Return the files in the launcher that follow the hosts, by path."""
        files = config_files.host_files(self._host_names(self._hosts), self.slots)
        return {config_files.COPY_PATHS[name]: text for name, text in files.items()}

    @property
    def slots(self) -> int:
        """Return the number of processes per worker.

        :raises InvalidJobError: if ``slotsPerWorker`` is not a positive integer.
        """
        given = self.job.spec.get("slotsPerWorker")
        if given is None:
            return _gpu_count(self._first_container)
        # Checked, since it is written into host files.
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise InvalidJobError("must be an integer of 1 or more", field="spec.slotsPerWorker")
        return given

    def _role_rules(self, present: Collection[Replica] | None) -> list[ReadOnlyJSON]:
        exec_targets = [] if self._uses_ssh else self._host_names(self._exec_targets(present))
        own = {"resources": ["configmaps"], "resourceNames": [self._config_map_name]}
        return [
            *launcher_access.role_rules(exec_targets),
            {"apiGroups": [""], **own, "verbs": ["get"]},
        ]

    def _exec_targets(self, present: Collection[Replica] | None) -> Collection[int]:
        """Return the workers in which the launcher may run programs.

        Names without a pod of this job are excluded: another pod may have or get the name.
        """
        if present is None:
            return self._reachable
        if not self._hosts:
            # Without a launcher, one write when it starts replaces one per worker.
            return ()
        existing = {replica.index for replica in present if replica.type == WORKER}
        membership = self.job.status.membership
        scaling = membership.scaling if membership else None
        if (
            scaling
            and scaling.is_scale_out
            and not (scaling.is_ready or existing.issuperset(scaling.workers))
        ):
            # Likewise one write per ScaleOut; workers in the host file stay.
            existing.difference_update(set(scaling.workers).difference(self._hosts))
        return existing.intersection(self._reachable)

    @property
    def _reachable(self) -> Collection[int]:
        """Return the members, and the workers that are being added or removed."""
        spec, membership = self.job.replica_spec(WORKER), self.job.status.membership
        indexes = set(spec.indexes if spec else ())
        if membership is not None:
            indexes |= {*membership.present, *membership.hosts}
        return indexes

    @property
    def _hosts(self) -> Collection[int]:
        membership = self.job.status.membership
        return membership.hosts if membership else ()

    def _host_names(self, workers: Iterable[int]) -> list[str]:
        return [self.address(WORKER, index) for index in sorted(workers)]

    @property
    def _launcher_name(self) -> str:
        return self.address(LAUNCHER, 0)

    @property
    def _config_map_name(self) -> str:
        return f"{self.job.key.name}-config"

    @property
    def _uses_ssh(self) -> bool:
        return not self.job.elasticity or self.job.elasticity.attach is AttachMode.SSH

    @property
    def _ssh_access(self) -> SshAccess:
        return SshAccess.from_annotations(self.job.key.name, self.job.annotations)

    @property
    def _first_container(self) -> ReadOnlyJSON:
        spec = self.job.replica_spec(WORKER)
        return spec.template["spec"]["containers"][0] if spec else {}

    @property
    def _container_name(self) -> str:
        return str(self._first_container.get("name") or "")


def _gpu_count(container: ReadOnlyJSON) -> int:
    """Return how many GPUs a container has, or 1 if it has none."""
    limits = (container.get("resources") or {}).get("limits") or {}
    count = str(limits.get(_GPU_RESOURCE, ""))
    return max(1, int(count)) if count.isdecimal() and len(count) < 10 else 1

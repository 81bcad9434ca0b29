"""Elastic training: a launcher starts programs in workers that may come and go meanwhile.

It is the job's roster that tells the workers and the hosts; nothing here chooses any.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from dlctl.api.companions import Companion
from dlctl.api.elastic import LAUNCHER, WORKER, AttachMode
from dlctl.api.job import Replica, ReplicaSpec
from dlctl.api.meta import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS
from dlctl.errors import InvalidJobError
from dlctl.frameworks import launchers
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.elastic import files, hostfile_step, keys, pods
from dlctl.frameworks.elastic.ssh import SshAccess

JSON = Mapping[str, Any]
# What a worker's service publishes; nobody dials launchers.
SERVICE_PORTS: Final = {"ssh-port": 22, "kubeai-service-port": 9009}
_GPU: Final = "nvidia.com/gpu"


class TrainingJob(DLJob):
    """Elastic Horovod, DeepSpeed or mpirun: the launcher decides."""

    job_type = "TrainingJob"
    replica_types = [LAUNCHER, WORKER]
    container_properties = {"ports": [SERVICE_PORTS["ssh-port"]]}
    chief_type = LAUNCHER
    singletons = [LAUNCHER]
    companion_resources = (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, CONFIG_MAPS)
    lasting_resources = companion_resources
    keeps_secrets = True
    # That launchers may read their ConfigMap needs no word: the controller reads them all.
    granted = launchers.GRANTED

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        # Programs learn of each other from what starts them.
        return {}

    def equip(self, pod_spec: JSON, replica: Replica) -> JSON:
        if replica.type == WORKER:
            spec = pods.worker(pod_spec, by_ssh=self._by_ssh)
            return self._ssh.worker(spec) if self._by_ssh else spec
        defaults = self.job.defaults
        spec = pods.launcher(pod_spec, account=self._name, config=self._config_name)
        if self._by_ssh:
            spec = self._ssh.launcher(spec)
        else:
            image = defaults.mpi_delivery_image
            spec = pods.with_kubectl(spec, image=image, namespace=self.job.key.namespace)
        script = hostfile_step.script(by_ssh=self._by_ssh)
        return pods.with_hostfile_step(spec, image=defaults.elastic_init_image, script=script)

    def companions(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Companion]:
        yield from launchers.rights(self.job.key, self._name, self._rules(present))
        metadata = {"labels": {"app": self.job.key.name}}
        found = files.files(self._names(self._hosts), slots=self.slots, container=self._container)
        yield Companion(CONFIG_MAPS, self._config_name, {"metadata": metadata, "data": found})

    def secrets(self) -> Iterator[Companion]:
        if self._by_ssh and self._ssh.own:
            data = keys.secret_data(str(self.job.key))
            yield Companion(SECRETS, self._ssh.secret, {"type": "Opaque", "data": data})

    def host_files(self) -> Mapping[str, str]:
        """Return the files in the launcher that follow the hosts, by their paths."""
        hosts = self._names(self._hosts)
        return {
            files.COPIES[files.HOSTFILE]: files.hostfile(hosts, self.slots),
            files.COPIES[files.DEEPSPEED_HOSTFILE]: files.deepspeed_hostfile(hosts, self.slots),
        }

    @property
    def slots(self) -> int:
        """How many processes a worker has room for.

        :raises InvalidJobError: if that is not a number of them.
        """
        given = self.job.spec.get("slotsPerWorker")
        if given is None:
            return _gpus(self._first_container)
        # It is written into files that are read as lists.
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise InvalidJobError("must be an integer of 1 or more", field="spec.slotsPerWorker")
        return given

    def _rules(self, present: Collection[Replica] | None) -> list[JSON]:
        entered = [] if self._by_ssh else self._names(self._entered(present))
        own = {"resources": ["configmaps"], "resourceNames": [self._config_name]}
        return [*launchers.rules(entered), {"apiGroups": [""], **own, "verbs": ["get"]}]

    def _entered(self, present: Collection[Replica] | None) -> Collection[int]:
        """Return the workers that the launcher may run programs in.

        A name without a pod of this job is left out: another pod may have it, or get it.
        """
        if present is None:
            return self._reachable
        if not self._hosts:
            # There is no launcher yet: one write when it starts, not one for each worker.
            return ()
        there = {replica.index for replica in present if replica.type == WORKER}
        roster = self.job.status.roster
        change = roster.scaling if roster else None
        if change and change.adds and not (change.ready or there.issuperset(change.workers)):
            # Likewise for those of one ScaleOut; those in the host file stay.
            there.difference_update(set(change.workers).difference(self._hosts))
        return there.intersection(self._reachable)

    @property
    def _reachable(self) -> Collection[int]:
        """The workers that there are, those that come, and those that have not gone yet."""
        spec, roster = self.job.spec_of(WORKER), self.job.status.roster
        found = set(spec.indexes if spec else ())
        if roster is not None:
            found |= {*roster.present, *roster.hosts}
        return found

    @property
    def _hosts(self) -> Collection[int]:
        roster = self.job.status.roster
        return roster.hosts if roster else ()

    def _names(self, workers: Iterable[int]) -> list[str]:
        return [self.address(WORKER, index) for index in sorted(workers)]

    @property
    def _name(self) -> str:
        return self.address(LAUNCHER, 0)

    @property
    def _config_name(self) -> str:
        return f"{self.job.key.name}-config"

    @property
    def _by_ssh(self) -> bool:
        return not self.job.elasticity or self.job.elasticity.attach is AttachMode.SSH

    @property
    def _ssh(self) -> SshAccess:
        return SshAccess.of(self.job.key.name, self.job.annotations)

    @property
    def _first_container(self) -> JSON:
        spec = self.job.spec_of(WORKER)
        return spec.template["spec"]["containers"][0] if spec else {}

    @property
    def _container(self) -> str:
        return str(self._first_container.get("name") or "")


def _gpus(container: JSON) -> int:
    """Return how many GPUs a container has, or 1 if it has none."""
    limits = (container.get("resources") or {}).get("limits") or {}
    count = str(limits.get(_GPU, ""))
    return max(1, int(count)) if count.isdecimal() and len(count) < 10 else 1

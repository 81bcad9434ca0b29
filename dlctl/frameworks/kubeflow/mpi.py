"""MPI: mpirun in a launcher starts processes in workers that sleep; kubectl is its remote shell.

What the launcher needs are objects of the job: an account that may, and files that say how.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dlctl.api.companions import Companion
from dlctl.api.job import Deciders, Replica, ReplicaSpec
from dlctl.api.meta import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from dlctl.api.status import JobPhase
from dlctl.errors import InvalidJobError
from dlctl.frameworks import launchers
from dlctl.frameworks.kubeflow import mpi_files, mpi_pods
from dlctl.frameworks.kubeflow.job import KubeflowJob

JSON = Mapping[str, Any]
_LAUNCHER: Final = Replica("launcher", 0)
_BEFORE_RUN: Final = (JobPhase.NEW, JobPhase.CREATING)


class MPIJob(KubeflowJob):
    """Distributed MPI: the launcher decides, and workers wait for what it starts in them."""

    job_type = "MPIJob"
    tag = "mpi"
    replica_types = ["launcher", "worker"]
    container_properties = {"name": "mpi", "ports": [9999]}
    port_name = "mpi-port"
    singletons = ["launcher"]
    default_replicas = {"worker": 0}
    unnumbered = frozenset({"launcher"})
    # Started with the workers, mpirun would find some of them not there yet, and give up.
    waiting = frozenset({"launcher"})
    uncounted_at_end = frozenset({"worker"})
    reasons = {"Failed": "MPIJobMPIJobFailed"}
    # As mpi-operator names the event.
    taken_reason = "ErrResourceExists"
    has_services = False
    names_container = False
    age_first = True
    # In this order: nobody can bind a role that is not there, or be in a pod before the account is.
    companion_resources = (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, CONFIG_MAPS)
    lasting_resources = companion_resources
    granted = launchers.GRANTED

    def deciders(self) -> Deciders:
        return Deciders.chief(_LAUNCHER)

    def is_master(self, replica: Replica) -> bool:
        return replica == _LAUNCHER

    def told_with_namespace(self) -> bool:
        return False

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        # Of the launcher's first container alone, and there in an order that depends on the user's.
        return {}

    def equip(self, pod_spec: JSON, replica: Replica) -> JSON:
        if replica.type == "worker":
            return mpi_pods.worker(pod_spec, self._config_name)
        account = {"serviceAccountName": self._account}
        image, namespace = self.job.defaults.mpi_delivery_image, self.job.key.namespace
        steps = [mpi_pods.delivery(image, namespace)]
        if self.job.ganged and self.job.count("worker"):
            steps.append(mpi_pods.wait_for_workers(pod_spec, self._name))
        return mpi_pods.launcher({**account, **pod_spec, **account}, self._config_name, steps=steps)

    def companions(
        self, running: Collection[Replica], present: Collection[Replica] | None = None
    ) -> Iterator[Companion]:
        rules = launchers.rules(self._names(self._entered(present)))
        yield from launchers.rights(self.job.key, self._name, rules, account=self._account)
        metadata = {"labels": {"app": self.job.key.name}}
        files = {"metadata": metadata, "data": self._files(running)}
        yield Companion(CONFIG_MAPS, self._config_name, files)

    def _entered(self, present: Collection[Replica] | None) -> Sequence[Replica]:
        """Return the workers that the launcher may run programs in.

        A name without a pod of this job is left out: another pod may have it, or get it.
        """
        workers = list(self.replicas_of("worker"))
        if present is None:
            return workers
        found = [worker for worker in workers if worker in present]
        done = self.job.status.completed("worker")
        complete = all(w in present or w.index in done for w in workers)
        # There is no launcher before all workers exist: one write instead of one for each worker.
        return found if complete or self.job.status.phase not in _BEFORE_RUN else []

    def _files(self, running: Collection[Replica]) -> Mapping[str, str]:
        workers = self._names(self.replicas_of("worker"))
        now = sorted(self._names(replica for replica in running if replica.type == "worker"))
        if self.job.status.phase in _BEFORE_RUN and len(now) < len(workers):
            # Nobody reads it before they all run: to write it as each starts is for nothing. In a
            # gang the launcher's pod is there already, and would see a later change too late.
            now = sorted(workers) if self.job.ganged else []
        first = [self._name] if mpi_pods.uses_gpu(self._launcher) else []
        return mpi_files.files(
            [*first, *workers],
            [*first, *now],
            slots=_slots(self.job.spec.get("slotsPerWorker")),
            container=self.job.spec.get("mainContainer"),
        )

    def _names(self, replicas: Iterable[Replica]) -> list[str]:
        return [self.address(replica.type, replica.index) for replica in replicas]

    @property
    def _name(self) -> str:
        return self.address(_LAUNCHER.type, _LAUNCHER.index)

    @property
    def _config_name(self) -> str:
        return f"{self.job.key.name}-config"

    @property
    def _launcher(self) -> JSON:
        spec = self.job.spec_of(_LAUNCHER.type)
        return spec.template["spec"] if spec else {}

    @property
    def _account(self) -> str:
        """Return who the launcher is: an account of its own, unless the template names one."""
        named = self._launcher.get("serviceAccountName") or self._launcher.get("serviceAccount")
        return str(named or self._name)


def _slots(given: Any) -> int:
    """Read how many processes a worker has room for; what is written into scripts is checked."""
    if given is None:
        return 1
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidJobError("must be an integer of 0 or more", field="spec.slotsPerWorker")
    return given

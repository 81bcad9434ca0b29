"""The fields of pods and services that the controller reads: projections of core/v1."""

import datetime
import enum
from collections.abc import Mapping
from typing import Final, Self

import msgspec

from dlctl.api.interning import Interner, with_parts
from dlctl.api.meta import Object, Projection, check_bytes, check_counts
from dlctl.api.objects.kept_metadata import check_metadata

# The scheduling gate of a pod that waits until the other replicas of its job run.
WORKERS_RUNNING_GATE = "dlctl.dev/workers-running"
# The names of the nodes that a pod avoids; absent if it avoids none.
AVOIDED_NODES: Final = "dlctl.dev/avoided-nodes"
PLACEMENT_HASH: Final = "dlctl.dev/placement-hash"
# Of its spec and status in memory. A kubelet reports some hundred bytes of each container, and at
# most 12 KiB of messages.
_MAX_BYTES: Final = 128 << 10


class PodPhase(enum.StrEnum):
    """The phase of a pod, as reported by the kubelet."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def finished(self) -> bool:
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


_PHASES: Final[Mapping[str, PodPhase]] = {phase.value: phase for phase in PodPhase}


class ContainerStateWaiting(Projection, frozen=True, gc=False):
    """Why a container does not run yet, or not again."""

    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(Projection, frozen=True, gc=False):
    """Since when a container runs."""

    started_at: datetime.datetime | None = None


class ContainerStateTerminated(Projection, frozen=True, gc=False):
    """How a container ended; a signal shows as exit code 128 + n."""

    exit_code: int = 0
    reason: str | None = None
    message: str | None = None
    started_at: datetime.datetime | None = None
    finished_at: datetime.datetime | None = None


class ContainerState(Projection, frozen=True, gc=False):
    """The state of a container: at most one of the three is set; none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Projection, frozen=True, gc=False):
    """One container, now (``state``) and before its last restart (``last_state``)."""

    name: str = ""
    restart_count: int | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None

    @property
    def has_ended(self) -> bool:
        """Return whether it ended at least once; it may run again."""
        return bool(self.restart_count or (self.state and self.state.terminated))

    @property
    def last_terminated(self) -> ContainerStateTerminated | None:
        """Return its current termination, or its previous one if that failed."""
        if self.state and self.state.terminated:
            return self.state.terminated
        last = self.last_state.terminated if self.last_state else None
        return last if last and last.exit_code else None


class PodCondition(Projection, frozen=True, gc=False):
    """A condition of a pod: PodScheduled, Ready, DisruptionTarget and others."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime.datetime | None = None


class PodStatus(Projection, frozen=True, gc=False):
    """The status of a pod, as reported by the kubelet and the control plane."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    start_time: datetime.datetime | None = None
    conditions: tuple[PodCondition, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None

    def __post_init__(self) -> None:
        check_counts(
            conditions=self.conditions,
            initContainerStatuses=self.init_container_statuses,
            containerStatuses=self.container_statuses,
        )

    def for_store(self, interner: Interner) -> Self:
        """Return an equal status that shares its parts with others of the interner."""
        return with_parts(
            self,
            phase=interner.text(self.phase),
            start_time=interner.part(self.start_time),
            conditions=interner.part(self.conditions),
            # The message of a program that ended is long, and no other pod's.
            container_statuses=self.container_statuses
            if self._has_ended_container
            else interner.part(self.container_statuses),
        )

    @property
    def _has_ended_container(self) -> bool:
        return any(status.has_ended for status in self.container_statuses or ())


class PodSchedulingGate(Projection, frozen=True, gc=False):
    """A gate that must be removed before the pod is scheduled."""

    name: str = ""


class InitContainer(Projection, frozen=True, gc=False):
    """An init container; one with its own restart policy is a native sidecar."""

    name: str = ""
    restart_policy: str | None = None


class PodSpec(Projection, frozen=True, gc=False):
    """The node of a pod, its restart policy, gates and init containers."""

    node_name: str | None = None
    restart_policy: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    init_containers: tuple[InitContainer, ...] | None = None

    def __post_init__(self) -> None:
        check_counts(schedulingGates=self.scheduling_gates, initContainers=self.init_containers)


class Pod(Object, frozen=True, gc=False):
    """A pod, as far as decisions need it."""

    kept_annotations = (AVOIDED_NODES, PLACEMENT_HASH)

    spec: PodSpec | None = None
    status: PodStatus | None = None

    def __post_init__(self) -> None:
        check_metadata(self.metadata)
        check_bytes(_MAX_BYTES, spec=self.spec, status=self.status)

    def for_store(self, interner: Interner) -> Self:
        """Return the pod with dlctl's annotations alone; it shares its parts with others."""
        return with_parts(
            super().for_store(interner),
            spec=interner.part(self.spec),
            status=self.status.for_store(interner) if self.status else None,
        )

    @property
    def phase(self) -> PodPhase:
        """Return the phase: Pending if absent, Unknown if not a known one."""
        phase = (self.status.phase if self.status else None) or PodPhase.PENDING
        return _PHASES.get(phase, PodPhase.UNKNOWN)

    @property
    def node_name(self) -> str:
        """Return the name of its node; empty if it is not scheduled."""
        return (self.spec.node_name if self.spec else None) or ""

    @property
    def status_reason(self) -> str:
        """Return the reason in its status; empty if it has none."""
        return (self.status.reason if self.status else None) or ""

    @property
    def scheduling_gates(self) -> tuple[PodSchedulingGate, ...]:
        return (self.spec.scheduling_gates if self.spec else None) or ()

    @property
    def container_statuses(self) -> tuple[ContainerStatus, ...]:
        return (self.status.container_statuses if self.status else None) or ()

    @property
    def init_container_statuses(self) -> tuple[ContainerStatus, ...]:
        return (self.status.init_container_statuses if self.status else None) or ()

    def container_status(self, name: str) -> ContainerStatus | None:
        """Return the status of a container by name, if the kubelet has reported it."""
        for status in self.container_statuses:
            if status.name == name:
                return status
        return None

    def terminated(self, name: str) -> ContainerStateTerminated | None:
        """Return how a container ended, if it does not run or wait now."""
        status = self.container_status(name)
        return status.state.terminated if status and status.state else None

    @property
    def regular_init_statuses(self) -> list[ContainerStatus]:
        """Return the statuses of the init containers that run once, without native sidecars."""
        if not self.init_container_statuses:
            return []
        sidecars = {
            container.name
            for container in (self.spec.init_containers if self.spec else None) or ()
            if container.restart_policy == "Always"
        }
        return [status for status in self.init_container_statuses if status.name not in sidecars]

    @property
    def unfinished_init_status(self) -> ContainerStatus | None:
        """Return the status of the init container that runs, or has failed; None if none does."""
        for status in self.regular_init_statuses:
            end = status.last_terminated
            if (status.state and status.state.running) or (end and end.exit_code):
                return status
        return None

    @property
    def unfinished_init_container(self) -> str:
        """Return the name of the init container that runs, or has failed; empty if none does."""
        status = self.unfinished_init_status
        return status.name if status else ""

    @property
    def is_terminal(self) -> bool:
        """Return whether all containers have terminated and none will be restarted.

        The kubelet reports the last container's termination with the old phase; the terminal phase
        follows about a second later.
        """
        statuses = self.container_statuses
        terminated = bool(statuses) and all(map(self._is_container_final, statuses))
        return self.phase.finished or terminated or self._has_failed_init

    def is_terminated(self, container: str) -> bool:
        """Return whether a container has terminated for good, even if others still run."""
        status = self.container_status(container)
        return self.is_terminal or (status is not None and self._is_container_final(status))

    def _is_container_final(self, status: ContainerStatus) -> bool:
        end = status.state.terminated if status.state else None
        policy = (self.spec.restart_policy if self.spec else None) or "Always"
        return end is not None and (
            policy == "Never" or (policy == "OnFailure" and not end.exit_code)
        )

    @property
    def _has_failed_init(self) -> bool:
        ends = (s.state.terminated for s in self.regular_init_statuses if s.state)
        failed = any(end is not None and end.exit_code for end in ends)
        return failed and self.spec is not None and self.spec.restart_policy == "Never"

    @property
    def is_gated(self) -> bool:
        """Return whether dlctl's gate still prevents scheduling."""
        return any(gate.name == WORKERS_RUNNING_GATE for gate in self.scheduling_gates)

    def condition(self, type_: str) -> PodCondition | None:
        conditions = (self.status.conditions if self.status else None) or ()
        return next((c for c in conditions if c.type == type_), None)


class ServiceSpec(Projection, frozen=True, gc=False):
    """The part of a service that changes after its creation."""

    publish_not_ready_addresses: bool | None = None


class Service(Object, frozen=True, gc=False):
    """A service, as far as decisions need it."""

    kept_annotations = ()

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)

    def __post_init__(self) -> None:
        check_metadata(self.metadata)

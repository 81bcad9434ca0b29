"""Progress of one replica of a job, as its pod shows it. Pure.

A pod may be deleted before its termination is seen; its last known state is kept.
"""

import datetime
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import Job
from dlctl.api.objects.pods import ContainerState, ContainerStateTerminated, ContainerStatus
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState

_STOPPED: Final = "Stopped"
_KEPT_EXITS: Final = 20
_START_ERROR: Final = "StartError"
_PHASE_BY_STATE: Final[Mapping[ReplicaState, str]] = {
    ReplicaState.MISSING: "Waiting",
    ReplicaState.PENDING: "Pending",
    ReplicaState.RUNNING: "Running",
    ReplicaState.TERMINATING: "Terminating",
    ReplicaState.SUCCEEDED: "Succeeded",
    ReplicaState.FAILED_RETRYABLE: "Lost",
    ReplicaState.FAILED_PERMANENT: "Failed",
    # A retired elastic worker: no pod replaces it under its name.
    ReplicaState.RETIRED: _STOPPED,
}
_FINAL: Final = frozenset(
    {_PHASE_BY_STATE[ReplicaState.SUCCEEDED], _PHASE_BY_STATE[ReplicaState.FAILED_PERMANENT]}
)
_SETTLED: Final = _FINAL | {_STOPPED, _PHASE_BY_STATE[ReplicaState.MISSING]}


@attrs.frozen
class ContainerRun:
    """One run of a replica's program: its pod, its container, and its number there."""

    pod_uid: str
    container: str
    number: int = 0


@attrs.frozen
class ContainerExit:
    """How a run ended."""

    run: ContainerRun
    exit_code: int
    # It could not be executed, as where its file is missing.
    not_executed: bool = False


@attrs.frozen
class ReplicaProgress:
    """One replica: its current or last pod, and the state of its program."""

    name: str
    type: str
    pod: str = ""
    phase: str = _PHASE_BY_STATE[ReplicaState.MISSING]
    restarts: int = 0
    # Of these restarts, those of its init containers.
    init_restarts: int = 0
    exit_code: int | None = None
    started: datetime.datetime | None = None
    # When its program ended, or the init container that it waits for failed.
    ended: datetime.datetime | None = None
    run: ContainerRun | None = None
    # How its last runs ended, in order.
    exits: tuple[ContainerExit, ...] = ()
    # Why its program does not start, as the node reports it.
    waiting_message: str = ""
    # The failed probe or hook for which the node has last ended its program.
    ended_by: str = ""
    # The run of the init container that it waits for, or that has failed.
    init_run: ContainerRun | None = None

    def elapsed_s(self, now: datetime.datetime) -> float | None:
        """Return how many seconds the program has run so far, or ran in total."""
        return ((self.ended or now) - self.started).total_seconds() if self.started else None

    @property
    def init_container(self) -> str:
        """Return the init container that it waits for, or that has failed; empty without one."""
        return self.init_run.container if self.init_run else ""

    @property
    def is_settled(self) -> bool:
        return self.phase in _SETTLED

    @property
    def never_started(self) -> bool:
        """Return whether its program has not run, and is not known to have ended."""
        return self.started is None and self.phase not in _FINAL

    @property
    def has_failed(self) -> bool:
        """Return whether its program has failed and is not restarted."""
        return self.phase == _PHASE_BY_STATE[ReplicaState.FAILED_PERMANENT]

    @property
    def has_log(self) -> bool:
        return self.started is not None

    @property
    def may_write_log(self) -> bool:
        """Return whether its program may still write output."""
        return self.started is not None and self.ended is None and not self.is_settled


def replica_progress(
    job: Job, observed: ObservedReplica, before: ReplicaProgress | None
) -> ReplicaProgress:
    """Return the progress of a replica, given the previous one; None at first."""
    replica, pod = observed.replica, observed.pod
    last = before or ReplicaProgress(str(replica), replica.type)
    if pod is None:
        return attrs.evolve(last, phase=_without_pod(observed, job.status, last))
    spec = job.replica_spec(replica.type)
    container = spec.container if spec else ""
    status = pod.container_status(container)
    run = ContainerRun(pod.metadata.uid, container, (status.restart_count or 0) if status else 0)
    if run == last.run and last.phase in _FINAL:
        # Later events do not change how the program terminated.
        return last
    starts = _starts_since(last.run, run)
    # A pod that replaces one is another try of the init container that it was in.
    is_init_retry = last.init_run and last.init_run.pod_uid != run.pod_uid
    last = attrs.evolve(
        last,
        pod=pod.metadata.name,
        run=run,
        restarts=last.restarts + starts,
        init_restarts=last.init_restarts + (starts if is_init_retry else 0),
    )
    init = pod.unfinished_init_status
    if init is None or _state(status).running or _end(status):
        return _of_program(last, run, observed, status)
    return _of_init_container(last, run, observed, status, init)


def _of_program(
    last: ReplicaProgress,
    run: ContainerRun,
    observed: ObservedReplica,
    status: ContainerStatus | None,
) -> ReplicaProgress:
    """Return the progress of a replica whose program runs, has run, or may start."""
    state, ended = _state(status), _end(status)
    start, end = state.running or ended, observed.termination or ended
    code = end.exit_code if end else None
    return attrs.evolve(
        last,
        phase=_phase(observed, status),
        exit_code=code,
        started=start.started_at if start else None,
        ended=ended.finished_at if ended else None,
        exits=_exits(_without_init(last, run) if start else last, run, status, code),
        waiting_message=_waiting_message(observed, state, None),
        init_run=None,
    )


def _of_init_container(
    last: ReplicaProgress,
    run: ContainerRun,
    observed: ObservedReplica,
    status: ContainerStatus | None,
    init: ContainerStatus,
) -> ReplicaProgress:
    """Return the progress of a replica whose program waits for an init container.

    The ends of that are the replica's, too.
    """
    init_run = ContainerRun(run.pod_uid, init.name, init.restart_count or 0)
    restarts, init_end, end = _init_restarts(last, init_run), _end(init), observed.termination
    return attrs.evolve(
        last,
        phase=_phase(observed, init if _state(init).waiting else status),
        restarts=last.restarts + restarts,
        init_restarts=last.init_restarts + restarts,
        exit_code=end.exit_code if end else None,
        started=None,
        ended=init.last_terminated.finished_at if init.last_terminated else None,
        exits=_exits(last, init_run, init, init_end.exit_code if init_end else None),
        waiting_message=_waiting_message(observed, _state(status), init),
        init_run=init_run,
    )


def _exits(
    last: ReplicaProgress, run: ContainerRun, status: ContainerStatus | None, code: int | None
) -> tuple[ContainerExit, ...]:
    """Return the ends of runs, with those that the status shows: of this run and the one before."""
    seen = {end.run: end for end in last.exits}
    before = _last_termination(status)
    last_end = _state(status).terminated or before
    if run.number and code is None and before:
        ended = attrs.evolve(run, number=run.number - 1)
        failed_start = before.reason == _START_ERROR
        seen.setdefault(ended, ContainerExit(ended, before.exit_code, failed_start))
    if code is not None:
        failed_start = last_end is not None and last_end.reason == _START_ERROR
        seen[run] = ContainerExit(run, code, failed_start)
    return tuple(seen.values())[-_KEPT_EXITS:]


def _without_init(last: ReplicaProgress, run: ContainerRun) -> ReplicaProgress:
    """Return the progress without the ends of init containers, which explain nothing any more."""
    own = (end for end in last.exits if end.run.container == run.container)
    return attrs.evolve(last, exits=tuple(own))


def _init_restarts(last: ReplicaProgress, run: ContainerRun) -> int:
    """Return how often an init container was restarted since; a new pod has its own count."""
    before = last.init_run
    is_same = before and (before.pod_uid, before.container) == (run.pod_uid, run.container)
    return run.number - (before.number if before and is_same else 0)


def _state(status: ContainerStatus | None) -> ContainerState:
    return (status.state if status else None) or ContainerState()


def _end(status: ContainerStatus | None) -> ContainerStateTerminated | None:
    """Return how a program that does not run now terminated; None if it runs or has not run."""
    state = _state(status)
    return state.terminated or (_last_termination(status) if state.waiting else None)


def _last_termination(status: ContainerStatus | None) -> ContainerStateTerminated | None:
    """Return how the program that waits for a restart terminated."""
    return status.last_state.terminated if status and status.last_state else None


def _waiting_message(
    observed: ObservedReplica, state: ContainerState, init: ContainerStatus | None
) -> str:
    """Return why a program has not started yet; empty for others."""
    if observed.state is not ReplicaState.PENDING or state.waiting is None:
        return ""
    if init and init.state and init.state.running:
        return f"init container {init.name} runs"
    return state.waiting.message or ""


def _starts_since(last: ContainerRun | None, run: ContainerRun) -> int:
    if last is None:
        return run.number
    return run.number - last.number if last.pod_uid == run.pod_uid else run.number + 1


def _without_pod(observed: ObservedReplica, status: JobStatus, last: ReplicaProgress) -> str:
    if observed.state is ReplicaState.SUCCEEDED:
        return _PHASE_BY_STATE[ReplicaState.SUCCEEDED]
    is_retired = observed.state is ReplicaState.RETIRED
    if is_retired or status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE):
        # Its pod was cleaned up: the last seen outcome stands.
        return last.phase if last.is_settled and last.pod else _STOPPED
    return _PHASE_BY_STATE[ReplicaState.MISSING]


def _phase(observed: ObservedReplica, status: ContainerStatus | None) -> str:
    if observed.state is ReplicaState.PENDING:
        state = _state(status)
        # Its program may have ended before the phase of its pod says so.
        why = state.waiting or state.terminated
        return (why.reason if why else None) or _PHASE_BY_STATE[ReplicaState.PENDING]
    if observed.state is ReplicaState.RETIRED and (end := observed.termination):
        done = end.exit_class is ExitClass.SUCCESS
        return _PHASE_BY_STATE[ReplicaState.SUCCEEDED if done else ReplicaState.FAILED_PERMANENT]
    return _PHASE_BY_STATE[observed.state]

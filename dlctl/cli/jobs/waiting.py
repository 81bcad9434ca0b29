"""What a job that has not ended waits for, replica by replica. Pure."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.pods import ContainerStatus, Pod
from dlctl.api.status import JobPhase
from dlctl.cli.jobs.history import replica_names, some_names
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.tables import duration
from dlctl.reconcilers.launcher_job.launcher_state import creation_order
from dlctl.reconcilers.observe import (
    Children,
    ObservedReplica,
    ReplicaState,
    observe,
    observe_replica,
)

# Longer than a controller needs to take a job up.
_UNCLAIMED_S: Final = 10.0


def waiting_lines(
    job: JobSnapshot, pods: Sequence[Pod], events: Sequence[JobEvent], now: datetime.datetime
) -> Iterator[str]:
    """Yield what the job waits for; nothing if all of its replicas run, or it has ended."""
    if job.is_decided or not isinstance(job.job, Job):
        return
    if obstacle := _obstacle(job, now):
        yield obstacle
        return
    if job.blocked_message:
        yield job.blocked_message
    warnings = _last_warnings(job, pods, events)
    by_reason: dict[str, list[str]] = {}
    observed = list(_replicas(job, job.job, pods, now))
    for one in observed:
        if one.state is ReplicaState.MISSING:
            reason = _why_missing(job.job, one, observed, warnings.get("", ""))
        else:
            reason = _reason(one, warnings, now)
        if reason:
            by_reason.setdefault(reason, []).append(str(one.replica))
    for reason, replicas in by_reason.items():
        yield f"{some_names(replicas)}: {reason}"


def _obstacle(job: JobSnapshot, now: datetime.datetime) -> str:
    """Return what keeps the job as a whole from running; empty if only replicas wait."""
    if job.decoded.dialect.managed_by_external_controller(job.decoded):
        return (
            "another controller: spec.runPolicy.managedBy names it, so dlctl leaves the job alone"
        )
    if job.decoded.doubt:
        return job.decoded.doubt
    age_s = (now - job.created).total_seconds() if job.created else 0.0
    if job.status.phase is JobPhase.NEW and age_s > _UNCLAIMED_S:
        return (
            f"a controller: none has taken the job up in {duration(age_s)}; does `dlctl "
            "controller` run, and does it serve this kind in this namespace?"
        )
    if job.status.phase is JobPhase.SUSPENDED:
        return f"`dlctl resume {job}`: the job is suspended"
    return ""


def _replicas(
    snapshot: JobSnapshot, job: Job, pods: Sequence[Pod], now: datetime.datetime
) -> Iterator[ObservedReplica]:
    """Yield the replicas; a launcher's pod may be that of a batch/v1 Job."""
    launched = [pod for pod in pods if pod.metadata.controller_uid != snapshot.uid]
    for one in observe(job, Children(pods=pods), now).replicas:
        spec = job.replica_spec(one.replica.type)
        if spec is None or job.has_own_pod(one.replica) or not launched:
            yield one
        else:
            newest = max(launched, key=creation_order)
            yield observe_replica(job, spec, one.replica, newest, now)


def _last_warnings(
    job: JobSnapshot, pods: Sequence[Pod], events: Sequence[JobEvent]
) -> Mapping[str, str]:
    """Return the message of the last warning about each replica's pod, and about the job."""
    names = {**replica_names(job, pods), job.key.name: ""}
    return {
        names[event.involved_object.name]: event.message.strip()
        for event in sorted(events, key=lambda event: event.last)
        if event.type == "Warning" and event.involved_object.name in names
    }


def _why_missing(
    job: Job, one: ObservedReplica, replicas: Sequence[ObservedReplica], warning: str
) -> str:
    """Return why a replica has no pod."""
    if job.launcher_job and job.launcher_job.waits_for_workers and not job.has_own_pod(one.replica):
        workers = (other for other in replicas if job.has_own_pod(other.replica))
        unready = [str(worker.replica) for worker in workers if not worker.is_ready]
        if unready:
            return f"it starts once all workers are ready; still to be: {some_names(unready)}"
    return ": ".join(filter(None, ("it has no pod yet", warning)))


def _reason(one: ObservedReplica, warnings: Mapping[str, str], now: datetime.datetime) -> str:
    """Return why a replica that has a pod does not run; empty if it runs or has ended."""
    match one.state:
        case ReplicaState.FAILED_RETRYABLE:
            cause = one.termination.message if one.termination else "its pod is lost"
            return f"it is about to be restarted: {cause}"
        case ReplicaState.TERMINATING:
            since = one.pod.metadata.deletion_requested_at if one.pod else None
            return f"its pod is terminating{_for(since, now)}"
        case ReplicaState.PENDING if one.pod:
            return _pending(one.pod, warnings.get(str(one.replica), ""))
        case _:
            return ""


def _pending(pod: Pod, warning: str) -> str:
    """Return why a pod does not run: the first obstacle on its way."""
    status = pod.status
    if gates := (pod.spec.scheduling_gates if pod.spec else None) or ():
        return f"its pod is held by the scheduling gate {', '.join(gate.name for gate in gates)}"
    scheduled = pod.condition("PodScheduled")
    if scheduled and scheduled.status == "False":
        return f"no node takes its pod: {scheduled.message or scheduled.reason}"
    if pod.spec is None or not pod.spec.node_name:
        return "its pod has no node yet"
    for container in (status.init_container_statuses if status else None) or ():
        if container.state and container.state.running:
            return f"its init container {container.name} runs"
        if reason := _waiting(container):
            return f"its init container {container.name} waits: {reason}"
    waits = [_waiting(each) for each in (status.container_statuses if status else None) or ()]
    found = next(filter(None, waits), "")
    return ": ".join(filter(None, (found or "its program has not started", warning)))


def _waiting(container: ContainerStatus) -> str:
    waiting = container.state.waiting if container.state else None
    if waiting is None or waiting.reason in (None, "PodInitializing", "ContainerCreating"):
        return ""
    return ": ".join(filter(None, (waiting.reason, waiting.message)))


def _for(since: datetime.datetime | None, now: datetime.datetime) -> str:
    return f" for {duration((now - since).total_seconds())}" if since else ""

"""What a job that has not ended waits for, as far as anyone says. Pure."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.pods import Pod
from dlctl.api.status import JobPhase
from dlctl.cli.jobs.history import replica_names
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.tables import duration
from dlctl.cli.observed_replicas import observed_replicas
from dlctl.reconcilers.observe import (
    Observed,
    ObservedReplica,
    ReplicaState,
)
from dlctl.reconcilers.status.waiting import wait_state
from dlctl.reconcilers.status.waiting_replicas import some_names

# Longer than a controller needs to take a job up.
_UNCLAIMED_S: Final = 10.0


def waiting_lines(
    job: JobSnapshot, pods: Sequence[Pod], events: Sequence[JobEvent], now: datetime.datetime
) -> Iterator[str]:
    """Yield what the job waits for; nothing if all of its replicas run, or it has ended.

    The first line is the controller's sentence, or before its first one, what the pods show.
    """
    if job.is_decided or not isinstance(job.job, Job):
        return
    if obstacle := _obstacle(job, now, has_pods=bool(pods)):
        yield obstacle
        return
    replicas = tuple(observed_replicas(job.job, pods, now))
    found = wait_state(job.job, Observed(replicas), now, patience_s=0).waiting
    sentence = job.waiting_message or (found.message if found else "")
    if sentence:
        yield sentence
    if job.job.run_policy.suspended:
        return
    missing = [str(one.replica) for one in replicas if one.state is ReplicaState.MISSING]
    missing = [name for name in missing if name not in sentence]
    warnings = _last_warnings(job, pods, events)
    if missing:
        warning = warnings.get("", "")
        yield ": ".join(filter(None, (some_names(missing), "it has no pod yet", warning)))
    yield from _warning_lines(replicas, warnings, sentence)


def _warning_lines(
    replicas: Iterable[ObservedReplica], warnings: Mapping[str, str], sentence: str
) -> Iterator[str]:
    """Yield the last warnings about replicas that do not run; only kubelets know some causes."""
    by_warning: dict[str, list[str]] = {}
    for one in replicas:
        warning = warnings.get(str(one.replica), "")
        if one.state is ReplicaState.PENDING and warning and warning not in sentence:
            by_warning.setdefault(warning, []).append(str(one.replica))
    for warning, names in by_warning.items():
        yield f"{some_names(names)}: {warning}"


def _obstacle(job: JobSnapshot, now: datetime.datetime, *, has_pods: bool) -> str:
    """Return what keeps the job as a whole from running; empty if only replicas wait."""
    if job.decoded.dialect.managed_by_external_controller(job.decoded):
        return (
            "another controller: spec.runPolicy.managedBy names it, so dlctl leaves the job alone"
        )
    if job.decoded.doubt:
        return job.decoded.doubt
    age_s = (now - job.created).total_seconds() if job.created else 0.0
    if job.status.phase is JobPhase.NEW and not has_pods and age_s > _UNCLAIMED_S:
        return (
            f"a controller: none has taken the job up in {duration(age_s)}; does `dlctl "
            "controller` run, and does it serve this kind in this namespace?"
        )
    return ""


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

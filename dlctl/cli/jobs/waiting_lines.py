"""The causes for which a job that has not ended waits, as far as they are reported. Pure."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.observed_replicas import observed_replicas
from dlctl.cli.display.pod_warnings import bare_message
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.replica_pods import replica_names
from dlctl.cli.jobs.tables import duration
from dlctl.name_lists import first_names
from dlctl.reconcilers.job.status_rejection import STATUS_REJECTED
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status.waiting_cause import waiting_cause

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
    warnings = _last_warnings(job, pods, events)
    if reason := _job_level_reason(job):
        yield reason
        return
    about_status = _without_status(job, now, warnings.get("", ""), has_pods=bool(pods))
    if about_status and not pods:
        yield about_status
        return
    if not about_status and (refused := _refused_status(job, events)):
        about_status = f"its next status: {refused}"
    if about_status:
        yield about_status
    replicas = tuple(observed_replicas(job.job, pods, now))
    found = waiting_cause(job.job, Observed(replicas), now)
    sentence = job.waiting_message or (found.message if found else "")
    if sentence:
        yield sentence
    if job.job.run_policy.suspended:
        return
    missing = [str(one.replica) for one in replicas if one.state is ReplicaState.MISSING]
    missing = [name for name in missing if name not in sentence]
    if missing:
        warning = warnings.get("", "")
        if bare_message(warning) in f"{about_status}\n{sentence}":
            warning = ""
        yield ": ".join(filter(None, (first_names(missing), "it has no pod yet", warning)))
    yield from _warning_lines(replicas, warnings, sentence)


def _warning_lines(
    replicas: Iterable[ObservedReplica], warnings: Mapping[str, str], sentence: str
) -> Iterator[str]:
    """Yield the last warnings about replicas that do not run; only kubelets know some causes."""
    by_warning: dict[str, list[str]] = {}
    for one in replicas:
        warning = warnings.get(str(one.replica), "")
        if one.state is ReplicaState.PENDING and warning and bare_message(warning) not in sentence:
            by_warning.setdefault(warning, []).append(str(one.replica))
    for warning, names in by_warning.items():
        yield f"{first_names(names)}: {warning}"


def _job_level_reason(job: JobSnapshot) -> str:
    """Return what keeps the job as a whole from running; empty if only replicas wait."""
    if job.decoded.dialect.managed_by_external_controller(job.decoded):
        return (
            "another controller: spec.runPolicy.managedBy names it, so dlctl leaves the job alone"
        )
    return job.decoded.version_problem


def _without_status(
    job: JobSnapshot, now: datetime.datetime, warning: str, *, has_pods: bool
) -> str:
    """Return why a job has had no status for long; empty if it has one, or is new."""
    age_s = (now - job.created).total_seconds() if job.created else 0.0
    if job.status.phase is not JobPhase.NEW or age_s <= _UNCLAIMED_S:
        return ""
    if warning:
        return f"its first status: {warning}"
    undone = "given it a status, though it has pods," if has_pods else "taken the job up"
    return (
        f"a controller: none has {undone} in {duration(age_s)}; does `dlctl controller` run, and "
        "does it serve this kind in this namespace?"
    )


def _refused_status(job: JobSnapshot, events: Sequence[JobEvent]) -> str:
    """Return why the server refuses the job's status, if that is the last event about the job."""
    about = [event for event in events if event.involved_object.name == job.key.name]
    last = max(about, key=lambda event: event.last, default=None)
    return last.message.strip() if last and last.reason == STATUS_REJECTED else ""


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

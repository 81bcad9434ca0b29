"""``dlctl why`` as a function: from a job, its pods, the events and the time to lines. Pure."""

import datetime
from collections.abc import Iterable, Iterator, Sequence

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import RestartRecord
from dlctl.api.status.verdict import Verdict, last_verdict
from dlctl.cli.jobs.attempt_lines import attempt_lines, verdict_lines
from dlctl.cli.jobs.history import ended, history_lines, moments
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.replica_pods import container_of, decisive_status, replica_names
from dlctl.cli.jobs.tables import duration
from dlctl.cli.jobs.waiting_lines import waiting_lines
from dlctl.errors import InvalidJobError
from dlctl.name_lists import first_names


@attrs.frozen
class FirstFailure:
    """The first failed run of a program that is known, and where its output is."""

    replica: str
    pod: str
    message: str
    container: str
    # True if another run has followed in the same pod.
    previous: bool = False
    verdict: Verdict | None = None
    # True if another pod has its pod's name by now: the output is gone.
    is_replaced: bool = False


def first_failure(job: JobSnapshot, pods: Sequence[Pod]) -> FirstFailure | None:
    """Return the first cause in the status, or else the first failure that the pods still show."""
    if job.state == "Succeeded":
        return None
    failures = list(_failures(job, pods))
    verdict = last_verdict(job.status.attempts)
    recorded = verdict or job.status.failure
    if recorded is None:
        return failures[0] if failures else None
    shown = next((each for each in failures if each.replica == recorded.replica), None)
    return FirstFailure(
        recorded.replica,
        recorded.pod,
        recorded.message,
        container_of(job, recorded.replica),
        previous=shown is not None and shown.previous,
        verdict=verdict,
        is_replaced=shown is None and _is_created_since(pods, recorded.pod, recorded.time),
    )


def _is_created_since(pods: Sequence[Pod], name: str, time: datetime.datetime) -> bool:
    """Return whether the pod of a name was created at a time or later."""
    found = (pod.metadata.creation_timestamp for pod in pods if pod.metadata.name == name)
    return any(created is not None and created >= time for created in found)


def explain(
    job: JobSnapshot,
    pods: Sequence[Pod],
    events: Sequence[JobEvent],
    now: datetime.datetime,
    output: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the state of a job, its first cause, its restarts, what it waits for, its history.

    ``output`` is the end of what the first failure has written.
    """
    failure = first_failure(job, pods)
    yield _headline(job, now)
    above = [
        *_section("First cause", _first_cause(job, failure, output)),
        *_section("Attempts", attempt_lines(job.status.attempts, now)),
        *_section("Waits for", waiting_lines(job, pods, events, now)),
        *_section("Restarts", _restarts(job, pods, now)),
        *_section("Still running", _kept(job, pods)),
    ]
    yield from above
    happened = moments(job, pods, events, "\n".join(above))
    yield from _section("What happened (UTC)", history_lines(happened))
    if failure and failure.replica:
        names = replica_names(job, pods)
        pod = next((pod for pod in pods if pod.metadata.name == failure.pod), None)
        again = " --previous" if failure.previous else ""
        if pod and (init_container := pod.unfinished_init_container):
            again = f" -c {init_container}"
        # Without a pod there is no log to show.
        if failure.replica in {names[each.metadata.name] for each in pods}:
            yield from _section("More", [job.logs_command(failure.replica) + again])


def _headline(job: JobSnapshot, now: datetime.datetime) -> str:
    ran = job.elapsed_s(now)
    facts = [job.state]
    if ran is not None:
        facts.append(f"{'ran' if job.is_decided else 'for'} {duration(ran)}")
    if job.status.completion_time:
        ago_s = (now - job.status.completion_time).total_seconds()
        facts.append(f"ended {duration(ago_s)} ago")
    return f"{job} in namespace {job.key.namespace}: {', '.join(facts)}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in shown)


def _first_cause(
    job: JobSnapshot, failure: FirstFailure | None, output: Sequence[str]
) -> Iterator[str]:
    if isinstance(job.job, InvalidJobError):
        yield f"the job is invalid: {job.job}"
    elif failure is not None and failure.verdict is not None:
        yield from verdict_lines(failure.verdict)
        yield from (f"  | {line}" for line in output or failure.verdict.message_lines[1:])
    elif failure is not None:
        pod = f" (pod {failure.pod})" if failure.pod else ""
        yield f"{failure.replica}{pod}: {failure.message}" if failure.replica else failure.message
        yield from (f"  | {line}" for line in output)
    elif job.state == "Failed":
        yield job.status.reason or "the status names none"


def _kept(job: JobSnapshot, pods: Sequence[Pod]) -> Iterator[str]:
    """Yield which replicas run on after the end of their job, and what deletes their pods."""
    if not job.is_decided or job.is_deleting or not isinstance(job.job, Job):
        return
    if job.job.run_policy.clean_pod_policy is not CleanPodPolicy.NONE:
        return
    names = replica_names(job, pods)
    kept = [
        names[pod.metadata.name]
        for pod in pods
        if not (pod.metadata.is_terminating or _has_ended(job, pod, names[pod.metadata.name]))
    ]
    if kept and isinstance(job.manifest.get("spec"), list):
        yield f"{first_names(kept)}: pods stay until the job is deleted"
    elif kept:
        yield (
            f"{first_names(kept)}: cleanPodPolicy is None; spec.runPolicy.cleanPodPolicy: Running "
            "deletes them, also now"
        )


def _has_ended(job: JobSnapshot, pod: Pod, replica: str) -> bool:
    # Running keeps a pod in which only sidecars are left.
    return pod.is_terminal or pod.is_terminated(container_of(job, replica))


def _failures(job: JobSnapshot, pods: Sequence[Pod]) -> Iterator[FirstFailure]:
    """Yield the failed runs of programs that pods still show, the oldest first."""
    names = replica_names(job, pods)
    runs = [
        (end.finished_at, names[pod.metadata.name], pod.metadata.name, status, end)
        for pod in pods
        if (status := decisive_status(job, pod, names[pod.metadata.name]))
        for state in (status.last_state, status.state)
        if state and (end := state.terminated) and end.exit_code and end.finished_at
    ]
    by_name = {pod.metadata.name: pod for pod in pods}
    for _, replica, pod_name, status, end in sorted(runs, key=lambda run: run[:3]):
        now = status.state
        previous = bool(now and (now.running or (now.terminated and now.terminated is not end)))
        message = f"{_init_prefix(by_name[pod_name])}{ended(end)}"
        yield FirstFailure(replica, pod_name, message, status.name, previous)


def _init_prefix(pod: Pod) -> str:
    name = pod.unfinished_init_container
    return f"init container {name}: " if name else ""


def _restart_count(
    record: RestartRecord | None, pod: Pod | None, in_pod: int, *, is_recorded: bool
) -> int:
    """Return how often a replica was restarted, at least: its record does not count everything.

    Failures leave out evictions, and a long run starts the consecutive ends again.
    """
    if record is None:
        return in_pod
    if is_recorded:
        return max(record.failures, record.consecutive_ends, in_pod)
    # Of a pod that has ended, the failures include those in place.
    is_counted = pod is not None and pod.metadata.uid == record.pod_uid
    failures = record.failures if is_counted else record.failures + in_pod
    return max(failures, record.consecutive_ends + in_pod)


def _restarts(job: JobSnapshot, pods: Sequence[Pod], now: datetime.datetime) -> Iterator[str]:
    names = replica_names(job, pods)
    in_place = {names[pod.metadata.name]: pod for pod in pods}
    for replica in dict.fromkeys((*job.status.restarts, *in_place)):
        record = job.status.restarts.get(replica)
        pod = in_place.get(replica)
        status = decisive_status(job, pod, replica) if pod else None
        in_pod = (status and status.restart_count) or 0
        # The record of a launcher that is the pod of a Job has those in the pod as well.
        is_recorded = _is_of_a_job(job, replica)
        if not (count := _restart_count(record, pod, in_pod, is_recorded=is_recorded)):
            continue
        last = status.last_state.terminated if status and status.last_state else None
        if pod and last is not None:
            how, when = f"{_init_prefix(pod)}{ended(last)}", last.finished_at
        elif record is not None:
            how, when = record.describe(), record.finished_at
        else:
            how, when = "its cause is not known", None
        ago = f", {duration((now - when).total_seconds())} ago" if when else ""
        yield f"{replica}: {count}; the last after {how}{ago}"
    if job.status.job_restarts:
        yield f"the whole job: {job.status.job_restarts}"


def _is_of_a_job(job: JobSnapshot, replica: str) -> bool:
    launched = isinstance(job.job, Job) and job.job.launcher_job is not None
    return launched and replica == str(LAUNCHER_REPLICA)

"""Outcomes of jobs for people: one closing line, and the cause of what was no success. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import yaml

from dlctl.api.status.job_status import Failure
from dlctl.api.status.verdict import last_verdict
from dlctl.cli.display.hints import hints
from dlctl.cli.display.log_selection import chief_first
from dlctl.cli.display.pod_warnings import bare_message
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ContainerRun, ReplicaProgress
from dlctl.cli.display.restart_limit import cannot_start, describe_restarts, replica_beyond
from dlctl.durations import precise_duration
from dlctl.errors import truncated
from dlctl.manifest_yaml import ManifestDumper
from dlctl.name_lists import first_names

# The last lines of a replica of a job, at most that many.
LastLines = Callable[[JobProgress, str, int], Sequence[str]]

_MAX_LINES: Final = 20
# Binary output has few line ends: 20 of its lines would move the cause off the screen.
_MAX_LINE_CHARS: Final = 400
_MAX_REPLICAS: Final = 10
# How many logs are shown of a job without a failed replica.
_MAX_LOGS: Final = 3


@attrs.frozen
class RunEnd:
    """Why jobs are no longer followed, unless they have finished."""

    timeout_s: float | None = None
    interrupted: bool = False
    max_restarts: int | None = None

    def reason(self, job: JobProgress) -> str:
        if self.interrupted:
            return f"interrupted after {precise_duration(job.elapsed_s)}"
        if self.timeout_s is not None:
            return f"timed out after {precise_duration(self.timeout_s)}"
        return "no longer followed"


def status_yaml(obj: Mapping[str, Any]) -> str:
    """Return an object's identity and status as a YAML document."""
    metadata = obj["metadata"]
    shown = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {name: metadata[name] for name in ("name", "namespace") if name in metadata},
        "status": obj.get("status") or {},
    }
    return yaml.dump(
        shown, Dumper=ManifestDumper, width=120, allow_unicode=True, explicit_start=True
    )


def closing_lines(job: JobProgress, end: RunEnd, last_lines: LastLines) -> Iterator[str]:
    """Yield the outcome in one line; without a success also its cause, with log lines and hints."""
    took = precise_duration(job.elapsed_s)
    if job.has_succeeded:
        yield f"{job} succeeded in {took}{_without_success(job)}"
    elif job.failure is not None:
        yield from _failed(job, job.failure, last_lines)
    elif job.is_deleted:
        yield f"{job} was deleted before it finished"
    elif job.is_finished:
        yield f"{job} failed after {took}: {job.reason}"
    elif replica := replica_beyond(job, end.max_restarts):
        where = _where(replica.name, replica.pod, replica.init_container)
        yield f"{job} failed after {took}: {where} " + (
            f"cannot start{f': {replica.waiting_message}' if replica.waiting_message else ''}"
            if cannot_start(replica)
            else f"{describe_restarts(replica)}; --max-restarts allows {end.max_restarts}"
        )
        yield from _explained(job, replica.name, last_lines, cause=describe_restarts(replica))
    else:
        why = f": {job.notice}" if job.notice else ""
        yield f"{job} has not finished: {end.reason(job)}, it is {job.phase or 'not started'}{why}"
        yield from _unfinished(job, end, last_lines)


def explaining_runs(job: JobProgress, name: str) -> list[ContainerRun]:
    """Return the runs of a replica; of a failed job, first those that ended as its cause says.

    One that followed may have been ended with the job.
    """
    replica = job.replica(name)
    if replica is None:
        return []
    # While the job goes on, the end of an earlier attempt explains nothing.
    given = (job.failure, last_verdict(job.attempts)) if job.failure else ()
    causes = [cause for cause in given if cause]
    codes = {cause.exit_code for cause in causes if cause.replica in ("", name)}
    ended = [(end.run, end.exit_code in codes) for end in reversed(replica.exits)]
    # A run that has just been started explains nothing.
    last = [replica.run] if replica.run and not replica.may_write_log else []
    first = [run for run, is_cause in ended if is_cause]
    return list(
        dict.fromkeys([*first, *last, *(run for run, _ in ended), *filter(None, [replica.run])])
    )


def _without_success(job: JobProgress) -> str:
    """Return the replicas of a successful job that have not done their part."""
    text = ""
    for names, what in ((job.failed_replicas, "failed"), (job.never_started, "never started")):
        if names:
            text += f"; {first_names(names, _MAX_REPLICAS)} {what}"
    return text


def _where(replica: str, pod: str, init_container: str = "") -> str:
    init = f", init container {init_container}" if init_container else ""
    return f"{replica} (pod {pod}{init})" if replica else "the job"


def _failed(job: JobProgress, failure: Failure, last_lines: LastLines) -> Iterator[str]:
    """Yield the first cause of a failure, the end of its output, and what helps."""
    beginning = f"{job} failed after {precise_duration(job.elapsed_s)}"
    verdict = last_verdict(job.attempts)
    if verdict is None or not verdict.replica:
        where = _where(failure.replica, failure.pod)
        yield f"{beginning}: {where}: {failure.message}"
        if not failure.replica:
            # Any of them may have hung.
            yield from _logs_of(job, chief_first([r.name for r in job.replicas]), last_lines)
            return
        yield from _restarts(job, failure.replica)
        yield from _explained(job, failure.replica, last_lines, cause=failure.message)
        return
    # All run on this machine.
    cause = attrs.evolve(verdict, node="").headline
    yield f"{beginning}: {cause}"
    if not failure.replica:
        yield f"  {failure.message}"
    if verdict.collateral_count:
        yield f"  ended with it: {verdict.describe_collateral()}"
    yield from _restarts(job, verdict.replica)
    yield from _explained(job, verdict.replica, last_lines, verdict.message_lines[1:], cause)


def _restarts(job: JobProgress, name: str) -> Iterator[str]:
    replica = job.replica(name)
    if replica and replica.restarts:
        yield f"  {name} {describe_restarts(replica)}"


def _unfinished(job: JobProgress, end: RunEnd, last_lines: LastLines) -> Iterator[str]:
    order = chief_first([replica.name for replica in job.replicas])
    # Failing and waiting replicas first, then the chief.
    replicas = sorted(job.replicas, key=lambda r: (not _fails_or_waits(r), order.index(r.name)))
    for replica in replicas[:_MAX_REPLICAS]:
        is_shown = bare_message(replica.waiting_message) in job.notice
        reason = "" if is_shown else f": {replica.waiting_message}"
        restarts = f", {describe_restarts(replica)}" if replica.restarts else ""
        pod = replica.pod or "missing"
        yield f"  {replica.name} (pod {pod}): {replica.phase}{restarts}{reason}"
    if len(replicas) > _MAX_REPLICAS:
        yield f"  and {len(replicas) - _MAX_REPLICAS} more"
    failing = [replica for replica in replicas if _has_failed(replica)]
    if failing:
        yield from _explained(job, failing[0].name, last_lines)
    elif not end.interrupted:
        yield from _logs_of(job, [r.name for r in replicas if not r.is_settled], last_lines)


def _has_failed(replica: ReplicaProgress) -> bool:
    return any(end.exit_code for end in replica.exits)


def _fails_or_waits(replica: ReplicaProgress) -> bool:
    return _has_failed(replica) or bool(replica.waiting_message)


def _explained(
    job: JobProgress,
    replica: str,
    last_lines: LastLines,
    known: Sequence[str] = (),
    cause: str = "",
) -> Iterator[str]:
    found = job.replica(replica)
    if found and found.ended_by:
        yield f"  the node ended its program: {found.ended_by}"
        cause = ""
    lines = last_lines(job, replica, _MAX_LINES) or known
    yield from _log_lines(replica, lines)
    if not lines and found and any(not end.not_executed for end in found.exits):
        yield f"{replica} has written nothing"
    for hint in hints((cause, *lines)):
        yield f"hint: {hint}"


def _logs_of(job: JobProgress, names: Sequence[str], last_lines: LastLines) -> Iterator[str]:
    """Yield the ends of the logs of the first of some replicas."""
    for name in names[:_MAX_LOGS]:
        yield from _log_lines(name, last_lines(job, name, _MAX_LINES))


def _log_lines(replica: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"last lines of {replica}:"
    for line in lines:
        yield f"  | {truncated(line, _MAX_LINE_CHARS)}"

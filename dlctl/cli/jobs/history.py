"""The history of a job, in order: from its status, its pods and the events about both. Pure."""

import datetime
import enum
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.exit_codes import describe_exit_code
from dlctl.api.objects.pods import ContainerStateTerminated, Pod
from dlctl.api.status.conditions import CREATED
from dlctl.api.status.job_status import JobStatus
from dlctl.cli.display.pod_warnings import bare_message
from dlctl.cli.jobs.job_events import JobEvent
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.replica_pods import main_status, replica_names
from dlctl.name_lists import first_names

# Copies of what a pod's own status says, in events about its job.
_ABOUT_ONE_POD: Final = re.compile(r"(?:Pod: [^. ]+\.|Error pod )(\S+) ")
# Of a long history, the lines at its beginning and at its end that are shown.
_FIRST_LINES: Final = 50
_LAST_LINES: Final = 50


class Rank(enum.IntEnum):
    """The order of what happens within a second."""

    CREATED = enum.auto()
    EVENT = enum.auto()
    STARTED = enum.auto()
    ENDED = enum.auto()
    CONDITION = enum.auto()
    JOB_ENDED = enum.auto()


@attrs.frozen(order=True)
class Moment:
    """Something that happened to the job, or to one of its replicas."""

    # The API has whole seconds: within one, causes come before their effects.
    time: datetime.datetime
    rank: "Rank"
    # Empty for the job itself.
    replica: str
    text: str


def moments(
    job: JobSnapshot, pods: Sequence[Pod], events: Sequence[JobEvent], above: str
) -> list[Moment]:
    """Return what is known to have happened, the oldest first.

    Of a message that is in the text ``above``, only the reason is shown.
    """
    names = replica_names(job, pods)
    found = [moment for pod in pods for moment in _of_pod(job, pod, names[pod.metadata.name])]
    found += _of_status(job.status, above)
    if job.created:
        found.append(Moment(job.created, Rank.CREATED, "", "the job was created"))
    reported = "\n".join(condition.message for condition in job.status.conditions)
    shown = {pod.metadata.name for pod in pods}
    found += _of_events(events, names, reported, shown, above)
    # An end of a program that several report is shown as the last of them does.
    once = {(each.time, each.replica) if each.rank is Rank.ENDED else each: each for each in found}
    return sorted(once.values())


def ended(state: ContainerStateTerminated) -> str:
    """Return how a program ended."""
    code = state.exit_code
    reason = f", {state.reason}" if state.reason not in (None, "Error", "Completed") else ""
    return f"exit code {code} ({describe_exit_code(code)}{reason})"


def history_lines(happened: Sequence[Moment]) -> Iterator[str]:
    """Yield a line for each moment, with the time since the first; equal ones are one line.

    Of very many, those in the middle are left out: anybody may write events about a job.
    """
    lines = list(_all_lines(happened))
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out <= 0:
        yield from lines
        return
    yield from lines[:_FIRST_LINES]
    yield f"... {left_out} more ..."
    yield from lines[-_LAST_LINES:]


def _all_lines(happened: Sequence[Moment]) -> Iterator[str]:
    if not happened:
        return
    start = happened[0].time
    by_second = itertools.groupby(happened, lambda each: each.time.replace(microsecond=0))
    for time, group in by_second:
        replicas: dict[str, list[str]] = {}
        for moment in group:
            replicas.setdefault(moment.text, []).append(moment.replica)
        for text, names in replicas.items():
            after = f"+{max((time - start).total_seconds(), 0):.0f}s"
            subject = first_names([name for name in dict.fromkeys(names) if name])
            yield f"{time:%H:%M:%S}  {after:>6}  {subject and f'{subject}: '}{text}"


def _of_status(status: JobStatus, above: str) -> Iterator[Moment]:
    reported = ""
    for condition in status.conditions:
        if condition.status and condition.type != CREATED:
            # The section above has the verdict.
            message = condition.message.partition(". First cause: ")[0]
            reported += message
            text = f"{condition.type}: {condition.reason if message in above else message}"
            # A condition that stays true may get another reason later, as Waiting does.
            yield Moment(condition.last_update_time, Rank.CONDITION, "", text)
    for replica, record in status.restarts.items():
        code = record.exit_code
        end = "" if code is None else f"exit code {code} ({describe_exit_code(code)}), "
        # The last failure of a job that ends with it is recorded, but nothing follows.
        ended_job = status.completion_time and status.completion_time <= record.finished_at
        text = f"{end}{record.reason}{'' if ended_job else ': restarted'}"
        yield Moment(record.finished_at, Rank.ENDED, replica, text)
    failure = status.failure
    if failure is not None and (failure.replica or failure.message not in reported):
        yield Moment(failure.time, Rank.ENDED, failure.replica, failure.message)
    if status.completion_time is not None:
        text = f"the job ended: {status.state}"
        yield Moment(status.completion_time, Rank.JOB_ENDED, "", text)


def _of_pod(job: JobSnapshot, pod: Pod, replica: str) -> Iterator[Moment]:
    status = main_status(job, pod, replica)
    if status is None:
        return
    for state in (status.last_state, status.state):
        if state is None:
            continue
        start = state.running or state.terminated
        if start and start.started_at:
            yield Moment(start.started_at, Rank.STARTED, replica, "started")
        if (end := state.terminated) and end.finished_at:
            yield Moment(end.finished_at, Rank.ENDED, replica, ended(end))


def _of_events(
    events: Iterable[JobEvent],
    names: Mapping[str, str],
    reported: str,
    shown: Collection[str],
    above: str,
) -> Iterator[Moment]:
    """Yield the events about the job, and the warnings about its pods.

    Those that repeat a condition, or what a pod that is ``shown`` says itself, are left out.
    """
    for event in events:
        about_pod = event.involved_object.kind == "Pod"
        message = bare_message(event.message)
        if (message and message in reported) or (about_pod and event.type != "Warning"):
            continue
        if not about_pod and (named := _ABOUT_ONE_POD.match(event.message)) and named[1] in shown:
            continue
        count = event.count or 1
        times = f" ({count} times)" if count > 1 else ""
        replica = names.get(event.involved_object.name, "") if about_pod else ""
        text = event.reason if message in above else f"{event.reason}: {event.message.strip()}"
        yield Moment(event.first, Rank.EVENT, replica, text + times)

"""Outcomes of jobs for people: the status as kubectl prints it, and the cause of a failure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from dlctl.cli.log_tails import Logs
from dlctl.cli.progress import JobProgress

_MAX_LINES: Final = 20


def status_yaml(obj: Mapping[str, Any]) -> str:
    """Return an object's status as ``kubectl get -o yaml`` prints it."""
    return yaml.safe_dump({"status": obj.get("status") or {}}, width=120, allow_unicode=True)


def failure_lines(job: JobProgress, logs: Logs) -> Iterator[str]:
    """Yield lines that explain why a job did not succeed: first failure, meaning, last log lines.

    Yields nothing for a success.
    """
    if job.succeeded:
        return
    if job.failure is not None:
        failure = job.failure
        yield f"{job} failed: {failure.replica} (pod {failure.pod}): {failure.message}"
        yield from _last_lines(failure.replica, logs.get((str(job), failure.replica), ()))
    elif job.deleted:
        yield f"{job} was deleted before it finished"
    elif job.finished:
        yield f"{job} failed: {job.reason}"
    else:
        yield f"{job} has not finished: it is {job.phase or 'not started'}"
        yield from _unfinished(job, logs)


def _unfinished(job: JobProgress, logs: Logs) -> Iterator[str]:
    if job.notice:
        yield f"  {job.notice}"
    for replica in job.replicas:
        trouble = f": {replica.waiting_message}" if replica.waiting_message else ""
        yield f"  {replica.name} (pod {replica.pod or 'missing'}): {replica.phase}{trouble}"
    for replica in job.replicas:
        if not replica.settled:
            yield from _last_lines(replica.name, logs.get((str(job), replica.name), ()))


def _last_lines(replica: str, lines: Sequence[str]) -> Iterator[str]:
    shown = list(lines)[-_MAX_LINES:]
    if shown:
        yield f"last lines of {replica}:"
    for line in shown:
        yield f"  | {line}"

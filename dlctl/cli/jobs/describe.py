"""``dlctl why`` and ``dlctl describe``: the history of a job, and what it consists of."""

import argparse
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.cli.display.log_lines import displayable
from dlctl.cli.display.progress import JobProgress, job_progress
from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.jobs.cluster import (
    TargetCluster,
    add_kubeconfig_arguments,
    named_job,
    run_in_cluster,
)
from dlctl.cli.jobs.explanation import FirstFailure, explain, first_failure
from dlctl.cli.jobs.job_argument import add_one_job_argument
from dlctl.cli.jobs.job_events import JobEvent, events_of
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.log_streams import PodLogOptions
from dlctl.cli.jobs.replica_pods import replica_names, replica_totals
from dlctl.cli.jobs.tables import aligned, duration
from dlctl.kube.errors import RequestError

_MAX_LINES: Final = 10
_MAX_LINE_BYTES: Final = 1000


def configure_why(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain a job: its first failure, its restarts, what it waits for, and what happened in "
        "order. From its status, its pods and the events, which clusters keep for an hour."
    )
    _configure(parser, explain)


def configure_describe(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show a job's replicas, and all that `dlctl why` explains."
    _configure(parser, describe)


def describe(
    job: JobSnapshot,
    pods: Sequence[Pod],
    events: Sequence[JobEvent],
    now: datetime.datetime,
    output: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the facts about a job, a table of its replicas, and its explanation."""
    yield from aligned([(f"{name}:", value) for name, value in _facts(job).items() if value])
    progress = job_progress(job.kind, job.obj, pods, JobProgress(job.kind.singular, job.key), now)
    nodes = {pod.metadata.name: pod.node_name for pod in pods}
    if rows := [_row(replica, nodes, now) for replica in progress.replicas]:
        header = ("REPLICA", "STATE", "RESTARTS", "DURATION", "EXIT CODE", "POD", "NODE")
        yield ""
        yield from aligned([header, *rows])
    yield ""
    yield from explain(job, pods, events, now, output)


def _facts(job: JobSnapshot) -> dict[str, str]:
    """Return the facts about a job by their titles; empty ones are not shown."""
    facts = {
        "Kind": f"{job.kind.resource.kind} ({job.kind.resource.group})",
        "Created": f"{job.created:%Y-%m-%d %H:%M:%S} UTC" if job.created else "",
        "Labels": ", ".join(f"{k}={v}" for k, v in (job.obj.metadata.labels or {}).items()),
    }
    if isinstance(job.job, Job):
        policy = job.job.run_policy
        facts |= {
            "Replicas": replica_totals(job.job),
            "Images": ", ".join(dict.fromkeys(_images(job.job))),
            "Clean-up": f"{policy.clean_pod_policy} of its pods when it ends",
            "Deadline": f"{policy.active_deadline_s} s" if policy.active_deadline_s else "",
            "Failures allowed": "" if policy.backoff_limit is None else str(policy.backoff_limit),
        }
    return facts


def _row(
    replica: ReplicaProgress, nodes: Mapping[str, str], now: datetime.datetime
) -> tuple[str, ...]:
    """Return the row of a replica; ``nodes`` are the nodes by pod."""
    return (
        replica.name,
        replica.phase,
        str(replica.restarts),
        duration(replica.elapsed_s(now)),
        "" if replica.exit_code is None else str(replica.exit_code),
        replica.pod or "<none>",
        nodes.get(replica.pod, ""),
    )


def _images(job: Job) -> Iterator[str]:
    for spec in job.replica_specs:
        containers = spec.template["spec"]["containers"]
        yield from (each["image"] for each in containers if each["name"] == spec.container)


def _configure(parser: argparse.ArgumentParser, show: "Callable[..., Iterator[str]]") -> None:
    add_one_job_argument(parser)
    add_kubeconfig_arguments(parser)

    async def run(cluster: TargetCluster, args: argparse.Namespace) -> int:
        job = await named_job(cluster, args.job)
        pods = await cluster.pods(job)
        events = await events_of(cluster, job, replica_names(job, pods))
        failure = first_failure(job, pods)
        has_output = failure is not None and not failure.is_replaced
        output = await _read_last_lines(cluster, job, failure) if failure and has_output else ()
        for line in show(job, pods, events, cluster.clock.now(), output):
            # Writers of events and statuses must not control the reader's terminal.
            print(displayable(line.encode()))
        return 0

    parser.set_defaults(command=lambda args: run_in_cluster(args, lambda it: run(it, args)))


async def _read_last_lines(
    cluster: TargetCluster, job: JobSnapshot, failure: FirstFailure
) -> Sequence[str]:
    """Return the end of what a failed program has written; nothing if its pod is gone."""
    options = PodLogOptions(tail=_MAX_LINES, previous=failure.previous)
    path = PODS.path(job.key.namespace, failure.pod, "log")
    try:
        log = await cluster.client.get_raw(path, options.query(failure.container))
    except RequestError:
        return ()
    return last_lines(log)


def last_lines(log: bytes) -> Sequence[str]:
    """Return the last lines of a log for display, each shortened: one may have megabytes."""
    return [displayable(line[:_MAX_LINE_BYTES]) for line in log.splitlines()[-_MAX_LINES:]]

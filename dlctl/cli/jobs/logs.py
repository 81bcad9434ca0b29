"""``dlctl logs``: the output of a job's replicas."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from dlctl.api.job import Job
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.verdict import last_verdict
from dlctl.cli.display.log_lines import LogPrefixes, displayable
from dlctl.cli.display.log_selection import MAX_SHOWN, LogSelection
from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.duration_argument import duration_s
from dlctl.cli.jobs.cluster import (
    TargetCluster,
    add_kubeconfig_arguments,
    named_job,
    run_in_cluster,
)
from dlctl.cli.jobs.job_argument import add_one_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.log_streams import LogStreams, LogWriter, PodLogOptions
from dlctl.cli.jobs.replica_pods import replica_totals
from dlctl.errors import ConfigError, InvalidJobError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the output of a job's replicas: of all, or of the chief alone if there are more "
        f"than {MAX_SHOWN}. Lines begin with the replica's name unless only one is shown."
    )
    add_one_job_argument(parser)
    parser.add_argument(
        "--replica",
        action="append",
        default=[],
        metavar="NAME",
        help="a replica such as worker-1, a type such as worker, or all; repeatable",
    )
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="until the job ends, also across restarts of its programs",
    )
    parser.add_argument(
        "--tail", type=_line_count, metavar="N", help="the last N lines of each replica; -1: all"
    )
    parser.add_argument(
        "--since", type=duration_s, metavar="TIME", help="of the last 90s, 5m, 1h30m"
    )
    parser.add_argument(
        "-p", "--previous", action="store_true", help="of the program before its last restart"
    )
    parser.add_argument("--timestamps", action="store_true", help="with the time of each line")
    parser.add_argument(
        "-c", "--container", default="", help="another container than the training container"
    )
    add_kubeconfig_arguments(parser)
    parser.set_defaults(command=lambda args: run_in_cluster(args, lambda it: logs(it, args)))


def _line_count(text: str) -> int | None:
    """Return how many lines to show; None for all, for which kubectl has -1."""
    if text == "-1":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines: write 20, or -1 for all")
    return int(text)


async def logs(cluster: TargetCluster, args: argparse.Namespace) -> int:
    """Return 0 if there is a log, even if it is empty."""
    job = await named_job(cluster, args.job)
    names = select_replicas(job, args.replica)
    options = PodLogOptions(args.container, args.tail, args.since, args.previous, args.timestamps)
    writer = LogWriter(LogPrefixes.of(names) if len(names) > 1 else None)
    streams = LogStreams(cluster, writer, options, names)
    if not args.replica:
        _report_others(job, names)
    if args.follow:
        await streams.follow(job)
    else:
        await streams.show(job)
    latest = await cluster.refresh(job) or job
    selected = await streams.selected(latest)
    for line in no_log_reasons(latest, selected, streams.explained, options):
        print(displayable(line.encode()), file=sys.stderr)
    return 0 if streams.found else 1


def select_replicas(job: JobSnapshot, wanted: Sequence[str]) -> list[str]:
    """Return the names of the replicas to show.

    :raises ConfigError: if the job has no replica or type of a name.
    """
    if isinstance(job.job, InvalidJobError):
        raise ConfigError(f"{job} is invalid, so it has no replicas: {job.job}")
    selection, names = LogSelection(tuple(wanted)), [str(each) for each in job.job.replicas]
    for name in selection.unmatched(names):
        totals = replica_totals(job.job)
        raise ConfigError(f"--replica {name}: {job} has the replicas {totals}")
    return selection.shown(names)


def no_log_reasons(
    job: JobSnapshot,
    replicas: Sequence[ReplicaProgress],
    explained: set[str],
    options: PodLogOptions,
) -> Iterator[str]:
    """Yield why the replicas without output have none, unless that is explained."""
    for replica in replicas:
        if replica.name in explained:
            continue
        if replica.has_log:
            since = " since then" if options.since_s else ""
            # No lines were asked for.
            if options.tail != 0:
                yield f"{replica.name} has written nothing{since}"
        elif replica.init_container:
            yield (
                f"{replica.name} (pod {replica.pod}) has not started: {replica.phase}; for the "
                f"output of its init container: `{job.logs_command(replica.name)} "
                f"-c {replica.init_container}`"
            )
        elif replica.pod:
            why = f": {replica.waiting_message}" if replica.waiting_message else ""
            yield f"{replica.name} (pod {replica.pod}) has not started: {replica.phase}{why}"
        elif job.is_finished:
            yield (
                f"{replica.name} has no pod any more, and its output went with it"
                f"{_advice(job, replica.name)}"
            )
        else:
            yield f"{replica.name} has no pod: the job is {job.state}; `dlctl why {job}`"


def _advice(job: JobSnapshot, replica: str) -> str:
    """Return what is known of a replica, and how its output could have been kept."""
    verdict, text = last_verdict(job.status.attempts), ""
    if verdict is not None and verdict.replica == replica:
        # Perhaps with its last lines, but not if an exit code is all that is known.
        text = f"; `dlctl why {job}` says why it ended"
    if isinstance(job.job, Job) and job.job.run_policy.clean_pod_policy is not CleanPodPolicy.NONE:
        text += "; `cleanPodPolicy: None` keeps the pods of jobs that have ended"
    return text


def _report_others(job: JobSnapshot, names: Sequence[str]) -> None:
    total = 0 if isinstance(job.job, InvalidJobError) else job.job.total_replicas
    if total > len(names):
        print(
            f"dlctl: {names[0]} alone, of {total} replicas; --replica chooses others",
            file=sys.stderr,
        )

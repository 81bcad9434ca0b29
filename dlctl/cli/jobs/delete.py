"""``dlctl delete``: delete jobs, by default until they and their pods are gone."""

import argparse
import asyncio
import math
import sys
import time
from collections.abc import Sequence
from typing import Final

from dlctl.api.objects.pods import Pod
from dlctl.cli.jobs.cluster import (
    TargetCluster,
    add_kubeconfig_arguments,
    named_jobs,
    run_in_cluster,
)
from dlctl.cli.jobs.job_argument import add_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.name_lists import first_names

_EXPLAINED_AFTER_S: Final = 2.0
_PAUSE_S: Final = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Delete jobs with their pods, and wait until they are gone."
    add_job_argument(parser, "jobs", nargs="+")
    parser.add_argument(
        "--no-wait", dest="wait", action="store_false", help="return before they are gone"
    )
    add_kubeconfig_arguments(parser)
    parser.set_defaults(command=lambda args: run_in_cluster(args, lambda it: delete(it, args)))


async def delete(cluster: TargetCluster, args: argparse.Namespace) -> int:
    """Delete the jobs; all are looked up before the first is deleted."""
    found = await named_jobs(cluster, args.jobs)
    jobs = list({job.uid: job for job in found}.values())
    for job in jobs:
        # Only with this UID: a job that was created again under the name is another one.
        await cluster.client.delete(job.kind.resource, job.key, uid=job.uid)
    for job in jobs:
        if args.wait:
            await _wait_until_gone(cluster, job)
        print(f"{job} {'deleted' if args.wait else 'is being deleted'}")
    return 0


async def _wait_until_gone(cluster: TargetCluster, job: JobSnapshot) -> None:
    explained_at = time.monotonic() + _EXPLAINED_AFTER_S
    while await cluster.refresh(job) or await cluster.pods(job):
        if time.monotonic() >= explained_at:
            explained_at = math.inf
            print(_waiting_line(job, await cluster.pods(job)), file=sys.stderr, flush=True)
        await asyncio.sleep(_PAUSE_S)


def _waiting_line(job: JobSnapshot, pods: Sequence[Pod]) -> str:
    names = first_names([pod.metadata.name for pod in pods])
    reason = f": waiting for its pods to end ({names})" if pods else ""
    return f"{job} is being deleted{reason}; --no-wait does not wait for them"

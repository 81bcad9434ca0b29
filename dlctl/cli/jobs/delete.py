"""``dlctl delete``: delete jobs, by default until they and their pods are gone."""

import argparse
import asyncio
from typing import Final

from dlctl.cli.jobs.cluster import (
    TargetCluster,
    add_kubeconfig_arguments,
    named_job,
    run_in_cluster,
)
from dlctl.cli.jobs.job_argument import add_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot

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
    jobs = [await named_job(cluster, text) for text in args.jobs]
    for job in jobs:
        # Only with this UID: a job that was created again under the name is another one.
        await cluster.client.delete(job.kind.resource, job.key, uid=job.uid)
    for job in jobs:
        if args.wait:
            await _wait_until_gone(cluster, job)
        print(f"{job} {'deleted' if args.wait else 'is being deleted'}")
    return 0


async def _wait_until_gone(cluster: TargetCluster, job: JobSnapshot) -> None:
    while await cluster.refresh(job) or await cluster.pods(job):  # noqa: ASYNC110 - they are remote
        await asyncio.sleep(_PAUSE_S)

"""``dlctl suspend`` and ``dlctl resume``: set the field of a job's form that suspends it."""

import argparse
from collections.abc import Mapping
from typing import Any

from dlctl.cli.jobs.cluster import (
    TargetCluster,
    add_kubeconfig_arguments,
    named_jobs,
    run_in_cluster,
)
from dlctl.cli.jobs.job_argument import add_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.errors import ConfigError


def configure_suspend(parser: argparse.ArgumentParser) -> None:
    parser.description = "Suspend jobs: their pods are deleted, and the jobs stay."
    _configure(parser, suspended=True)


def configure_resume(parser: argparse.ArgumentParser) -> None:
    parser.description = "Resume suspended jobs: they start over, from their checkpoint if any."
    _configure(parser, suspended=False)


def _configure(parser: argparse.ArgumentParser, *, suspended: bool) -> None:
    add_job_argument(parser, "jobs", nargs="+")
    add_kubeconfig_arguments(parser)
    parser.set_defaults(
        command=lambda args: run_in_cluster(
            args, lambda it: suspend(it, args.jobs, suspended=suspended)
        )
    )


async def suspend(cluster: TargetCluster, names: list[str], *, suspended: bool) -> int:
    """Suspend or resume the jobs; all are looked up and checked before the first is changed."""
    jobs = await named_jobs(cluster, names)
    patches = [suspension_patch(job, suspended=suspended) for job in jobs]
    done = "suspended" if suspended else "resumed"
    for job, patch in zip(jobs, patches, strict=True):
        if patch is None:
            print(f"{job} is not suspended" if not suspended else f"{job} is suspended already")
            continue
        await cluster.client.patch(job.kind.resource, job.key, patch)
        print(f"{job} {done}")
    return 0


def suspension_patch(job: JobSnapshot, *, suspended: bool) -> Mapping[str, Any] | None:
    """Return the merge patch that suspends or resumes a job; None if it is so already.

    :raises ConfigError: if the job has ended, or its form has no field for it.
    """
    if job.is_decided:
        raise ConfigError(f"{job} has ended ({job.state}): there is nothing to suspend or resume")
    decoded = job.decoded
    patch = decoded.dialect.suspension_patch(decoded, suspended=suspended)
    if patch is None:
        raise ConfigError(
            f"{job} cannot be suspended: {decoded.resource.api_version} has no field for it; "
            "delete the job, and create it again later"
        )
    return None if decoded.dialect.run_policy(decoded).suspended == suspended else patch

"""The argument that names jobs, and the names for a shell that completes it."""

import argparse
import asyncio
from typing import Any, Final

from dlctl.cli.jobs.cluster import TargetCluster, run_in_cluster
from dlctl.errors import DlctlError

# A shell that waits longer seems broken.
_TIMEOUT_S: Final = 3.0


def add_job_argument(parser: argparse.ArgumentParser, name: str, **options: Any) -> None:
    """Add an argument for one or more jobs."""
    shown = {"metavar": "JOB", "help": "NAME, KIND/NAME or KIND NAME", **options}
    argument = parser.add_argument(name, **shown)
    argument.completer = complete_jobs  # type: ignore[attr-defined]


def add_one_job_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``job``; ``KIND NAME`` becomes ``KIND/NAME``."""
    add_job_argument(parser, "job")
    parser.add_argument("name", nargs="?", action=_NameOfKind, help=argparse.SUPPRESS)


class _NameOfKind(argparse.Action):
    """The second of two words, of which the first is the kind."""

    def __call__(
        self, _parser: object, namespace: argparse.Namespace, name: Any, *_: object
    ) -> None:
        if name is not None:
            namespace.job = f"{namespace.job}/{name}"


def complete_jobs(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the jobs that begin with the prefix, as NAME and as KIND/NAME; none without a cluster.

    The shell shows errors in the middle of the line, so there are none.
    """
    names: list[str] = []

    async def find(cluster: TargetCluster) -> int:
        jobs = await cluster.jobs(cluster.kinds)
        names.extend(name for job in jobs for name in (job.key.name, str(job)))
        return 0

    async def find_in_time(cluster: TargetCluster) -> int:
        async with asyncio.timeout(_TIMEOUT_S):
            return await find(cluster)

    try:
        run_in_cluster(parsed_args, find_in_time)
    except (DlctlError, TimeoutError):
        return []
    return sorted({name for name in names if name.startswith(prefix)})

"""One ``dlctl run``, from the manifests to the exit code."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console

from dlctl.cli.durations import describe_duration
from dlctl.cli.follow import Follower
from dlctl.cli.frameworks import loadable
from dlctl.cli.image_mappings import check_mappings_used, unmapped_lines
from dlctl.cli.interrupts import Interrupts
from dlctl.cli.local_cluster import LocalControlPlane, describe_network, local_control_plane, usage
from dlctl.cli.local_options import LocalOptions
from dlctl.cli.log_file import log_file
from dlctl.cli.manifest_checks import check, report
from dlctl.cli.manifests import Manifest, job_kind
from dlctl.cli.outcome import failure_lines, status_yaml
from dlctl.cli.screen import render_svg, screen
from dlctl.cli.start_checks import HopelessStartError, StartChecks
from dlctl.cli.submission import SubmittedJob, submit
from dlctl.cli.views import progress_view
from dlctl.clock import SystemClock
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from dlctl.errors import ConfigError
from dlctl.kube.errors import NotFoundError


@attrs.frozen
class RunSession:
    """The arguments of one ``dlctl run``; :meth:`run` executes it, once."""

    manifests: Sequence[Manifest]
    title: str
    options: LocalOptions
    namespace: str = "default"
    timeout_s: float | None = None
    keep: bool = False
    record: Path | None = None

    async def run(self, interrupts: Interrupts) -> int:
        """Return the exit code; nothing is left running, however this ends."""
        served = served_kinds(loadable())
        self._check(served)
        with log_file() as log, interrupts.temporary_directory() as run_dir:
            interrupts.remove_if_killed(log.path)
            async with local_control_plane(
                served, self.options, keep_logs=True, run_dir=run_dir
            ) as running:
                jobs = await submit(running.client, served, self.manifests, self.namespace)
                succeeded = await self._follow(running, jobs)
                if not succeeded:
                    for line in unmapped_lines(self.options.images, self.manifests):
                        print(line, file=sys.stderr)
                    log.keep()
                    print(f"the controller's log: {log.path}", file=sys.stderr)
                if self.keep:
                    print(
                        f"\nThe cluster runs until Ctrl-C:\n{usage(running.kubeconfig)}",
                        flush=True,
                    )
                    await interrupts.wait()
        return 0 if succeeded else 1

    def _check(self, served: Sequence[Kind]) -> None:
        check(served, self.manifests, self.namespace)
        if not any(job_kind(served, manifest.obj) for manifest in self.manifests):
            raise ConfigError("none of the manifests is a job of a kind that dlctl serves")
        check_mappings_used(self.options.images, self.manifests)
        checks = StartChecks(served, self.manifests, self.namespace, self.options.images)
        report(checks.problems(), HopelessStartError)

    async def _follow(self, running: LocalControlPlane, jobs: Sequence[SubmittedJob]) -> bool:
        """Watch until the jobs finish or time out, and report; return whether all succeeded."""
        console = Console(highlight=False, markup=False)
        console.print(f"network {describe_network(running.cluster.network)}", style="dim")
        shown = progress_view(console)
        follower = Follower(running.client, running.cluster.run_dir, jobs, shown)
        with shown:
            in_time = await _follow_with_timeout(follower, self.timeout_s)
        statuses = "".join([await _status(running, job) for job in jobs])
        print(statuses, end="", flush=True)
        if self.record:
            last = screen(follower.progress, follower.logs, SystemClock().now())
            svg = render_svg(last, title=self.title)
            await asyncio.to_thread(self.record.write_text, svg)
        if self.timeout_s and not in_time:
            print(f"timed out after {describe_duration(self.timeout_s)}", file=sys.stderr)
        for job in follower.progress:
            for line in failure_lines(job, follower.logs):
                print(line, file=sys.stderr)
        return all(job.succeeded for job in follower.progress)


async def _follow_with_timeout(follower: Follower, timeout_s: float | None) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await follower.follow()
    except TimeoutError:
        return False
    return True


async def _status(running: LocalControlPlane, job: SubmittedJob) -> str:
    try:
        obj = await running.client.get(job.kind.resource, job.key, dict[str, Any])
    except NotFoundError:
        return f"# {job.kind.singular} {job.key} is gone\n"
    return f"# {job.kind.singular} {job.key}\n{status_yaml(obj)}"

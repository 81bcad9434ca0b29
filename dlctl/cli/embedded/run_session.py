"""One ``dlctl run``, from the manifests to the exit code."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import attrs
from rich.console import Group
from rich.text import Text

from dlctl.cli.display.follow import Follower, FollowOptions
from dlctl.cli.display.outcome import RunEnd, closing_lines, status_yaml
from dlctl.cli.display.screen import render_svg, screen
from dlctl.cli.display.views import ProgressView, progress_view
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import (
    EmbeddedControlPlane,
    describe_network,
    embedded_control_plane,
    usage,
)
from dlctl.cli.embedded.disk_space import full_disk_lines, noexec_lines
from dlctl.cli.embedded.log_file import log_file
from dlctl.cli.embedded.output_options import OutputOptions
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.interrupts import Interrupts
from dlctl.cli.manifests.checks import check, print_warnings, report
from dlctl.cli.manifests.image_mappings import check_mappings_used, unmapped_lines
from dlctl.cli.manifests.loading import (
    Manifest,
    check_built,
    job_kind,
    no_job_error,
    replica_names,
)
from dlctl.cli.manifests.start_checks import NeverStartsError, StartChecks
from dlctl.cli.manifests.submission import SubmittedJob, submit
from dlctl.clock import SystemClock
from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError
from dlctl.kube.errors import NotFoundError


@attrs.frozen
class RunSession:
    """The arguments of one ``dlctl run``; :meth:`run` executes it, once."""

    manifests: Sequence[Manifest]
    title: str
    options: ClusterOptions
    namespace: str = "default"
    output: OutputOptions = attrs.field(factory=OutputOptions)
    keep: bool = False
    record: Path | None = None

    async def run(self, interrupts: Interrupts) -> int:
        """Return the exit code; nothing is left running, however this ends."""
        served = installed_kinds()
        self._check(served)
        logs = self.output.logs
        with (
            interrupts.temporary_directory() as run_dir,
            log_file(logs / "controller.log" if logs else None, run_dir) as log,
        ):
            limit = self.output.max_restarts
            options = attrs.evolve(self.options, log_dir=logs, immediate_restarts=lambda: limit)
            async with embedded_control_plane(
                served, options, keep_logs=True, run_dir=run_dir
            ) as running:
                jobs = await submit(running.client, served, self.manifests, self.namespace)
                succeeded = await self._follow(running, jobs, interrupts)
                lines = [*full_disk_lines(run_dir, logs)]
                if not succeeded:
                    log.keep()
                    lines += noexec_lines(run_dir)
                    lines += unmapped_lines(self.options.images, self.manifests)
                    lines.append(f"the controller's log: {log.path}")
                for line in lines:
                    print(line, file=sys.stderr)
                if self.keep:
                    self._print(f"\nThe cluster runs until Ctrl-C:\n{usage(running.kubeconfig)}")
                    await interrupts.wait()
                    await running.end_pods(interrupts, self._print)
                interrupts.tear_down()
        return 0 if succeeded else 1

    def _check(self, served: Sequence[Kind]) -> None:
        if self.record and (self.record.is_dir() or not self.record.absolute().parent.is_dir()):
            raise ConfigError(f"--record {self.record}: name a file in a directory that exists")
        check_built(self.manifests)
        check(served, self.manifests, self.namespace)
        print_warnings(served, self.manifests, self.namespace)
        jobs = [(kind, each.obj) for each in self.manifests if (kind := job_kind(served, each.obj))]
        if not jobs:
            raise no_job_error(self.manifests)
        check_mappings_used(self.options.images, self.manifests)
        checks = StartChecks(served, self.manifests, self.namespace, self.options.images)
        report(checks.problems(), NeverStartsError)
        for kind, job in jobs:
            self._check_selection(replica_names(kind, job))

    def _check_selection(self, names: Sequence[str]) -> None:
        selection = self.output.selection
        for wanted in selection.unmatched(names) if names else ():
            raise ConfigError(f"--replica {wanted}: the job has {', '.join(names)}")
        shown = selection.shown(names)
        if len(shown) < len(names) and not (selection.quiet or selection.wanted):
            self._print(
                f"log of {shown[0]} alone, of {len(names)} replicas; "
                "--replica NAME chooses others, --replica all shows all"
            )

    async def _follow(
        self, running: EmbeddedControlPlane, jobs: Sequence[SubmittedJob], interrupts: Interrupts
    ) -> bool:
        """Watch until the jobs finish or time out, and report; return whether all succeeded."""
        self._print(f"network {describe_network(running.cluster.network)}")
        limits = FollowOptions(self.output.selection, self.output.max_restarts)
        end = RunEnd(max_restarts=self.output.max_restarts)
        follower = Follower(running.client, running.cluster.run_dir, jobs, limits)
        try:
            if not await self._watch(running, follower, interrupts):
                end = attrs.evolve(end, timeout_s=self.output.timeout_s)
        except asyncio.CancelledError:
            if interrupts.caught is not None:
                self._close(follower, attrs.evolve(end, interrupted=True))
            raise
        closing = self._close(follower, end)
        if self.output.yaml:
            for job in jobs:
                print(await _status(running, job), end="", flush=True)
        if self.record:
            await asyncio.to_thread(self._record, self.record, follower, closing)
        return all(job.has_succeeded for job in follower.progress)

    async def _watch(
        self, running: EmbeddedControlPlane, follower: Follower, interrupts: Interrupts
    ) -> bool:
        """Return whether the jobs finished within the time limit.

        :raises asyncio.CancelledError: after a signal.
        """
        async with progress_view(self._stream) as view, asyncio.TaskGroup() as group:
            stopping = group.create_task(self._stop(running, follower, interrupts, view))
            await follower.follow(view)
            stopping.cancel()
        if interrupts.caught is not None:
            raise asyncio.CancelledError
        return stopping.cancelled()

    async def _stop(
        self,
        running: EmbeddedControlPlane,
        follower: Follower,
        interrupts: Interrupts,
        view: ProgressView,
    ) -> None:
        """After the first signal or the time limit, let the programs save their work and end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.output.timeout_s):
                await interrupts.wait()
        if interrupts.caught or not self.keep:
            await running.end_pods(interrupts, view.show_message)
        follower.stop()

    def _close(self, follower: Follower, end: RunEnd) -> list[str]:
        """Print how each job ended, and where the logs are; return the first line of each."""
        first: list[str] = []
        for job in follower.progress:
            lines = list(closing_lines(job, end, follower.last_lines))
            first.append(lines[0])
            stream = self._stream if job.has_succeeded else sys.stderr
            print("\n".join(lines), file=stream, flush=True)
        if self.output.logs:
            self._print(f"the logs are in {self.output.logs}")
        return first

    def _record(self, path: Path, follower: Follower, closing: Sequence[str]) -> None:
        several = len(follower.progress) > 1
        logs = [
            (f"{job.key.name} {replica}" if several else replica, line)
            for job, replica, line in follower.recent
        ]
        end = Text("\n" + "\n".join(closing))
        shown = Group(screen(follower.progress, SystemClock().now()), end)
        try:
            path.write_text(render_svg(logs, shown, title=self.title), encoding="utf-8")
        except OSError as error:
            # The exit code is the outcome of the jobs.
            print(f"dlctl: --record {path}: {error.strerror}", file=sys.stderr)

    @property
    def _stream(self) -> TextIO:
        """Return where people read: with ``-o`` stdout is for programs."""
        return sys.stderr if self.output.yaml else sys.stdout

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


async def _status(running: EmbeddedControlPlane, job: SubmittedJob) -> str:
    try:
        obj = await running.client.get(job.kind.resource, job.key, dict[str, Any])
    except NotFoundError:
        return ""
    return status_yaml(obj)

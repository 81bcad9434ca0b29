"""The embedded cluster for Python programs: run jobs on this machine, and get their results."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, get_args

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, ObjectKey, Resource
from dlctl.cli.display import restart_limit
from dlctl.cli.display.follow import Follower, FollowOptions
from dlctl.cli.display.log_selection import LogSelection
from dlctl.cli.display.outcome import RunEnd, closing_lines
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.embedded.argument_checks import check_run_options, image_paths, path_of
from dlctl.cli.embedded.cluster_options import ClusterOptions, NetworkChoice
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane, embedded_control_plane
from dlctl.cli.embedded.disk_space import full_disk_lines, noexec_lines
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.manifests.checks import check, report
from dlctl.cli.manifests.loading import Manifest, as_new, job_kind, load, parse
from dlctl.cli.manifests.python_objects import python_manifest
from dlctl.cli.manifests.start_checks import StartChecks
from dlctl.cli.manifests.submission import SubmittedJob, submit
from dlctl.dialects.kinds import served_kinds
from dlctl.errors import ConfigError, DlctlError, config_errors
from dlctl.kube.errors import NotFoundError
from dlctl.local.node.directories import NodeDirectories
from dlctl.tasks import unwrap_exception_groups

logger = logging.getLogger(__name__)
# An object, the text of some in YAML, or the path of a file with some.
ManifestSource = Mapping[str, Any] | str | Path
# Called with a replica's name and each line that it writes.
OnLine = Callable[[str, str], None]
# The last lines of each replica's log are kept, up to this number.
_MAX_LINES: Final = 100_000
_PAUSE_S: Final = 0.05


class JobFailedError(DlctlError):
    """A job has not succeeded; the message has the first cause and the last lines of output."""


@attrs.frozen
class JobResult:
    """How a job ended."""

    kind: str
    name: str
    namespace: str
    succeeded: bool
    #: The outcome in a line; for a failure, also the first cause and the last lines of its output.
    message: str
    #: As the API server has it.
    status: Mapping[str, Any] = attrs.field(repr=False)
    #: The output of each replica, by names such as ``worker-0``.
    logs: Mapping[str, str] = attrs.field(repr=False)

    def check(self) -> Self:
        """Return the result of a job that has succeeded.

        :raises JobFailedError: if it has not.
        """
        if not self.succeeded:
            raise JobFailedError(self.message)
        return self


class Cluster:
    """An embedded cluster with its controller, for the duration of an ``async with`` block.

    ``images`` maps names of images to Python environments; ``network`` and ``volumes`` are those of
    ``dlctl run``. No process is left after the block, whatever ends it.
    """

    def __init__(
        self,
        *,
        images: Mapping[str, str | Path] | None = None,
        network: NetworkChoice = "auto",
        volumes: str | Path | None = None,
    ) -> None:
        paths = image_paths(images or {})
        if network not in (choices := get_args(NetworkChoice)):
            raise ConfigError(f"network {network!r}: choose one of {', '.join(choices)}")
        claims = path_of("volumes", volumes) if volumes else None
        if claims:
            with config_errors(f"volumes {claims}"):
                claims.mkdir(parents=True, exist_ok=True)
        self._options = ClusterOptions(
            paths,
            network,
            directories=NodeDirectories(claims=claims),
            immediate_restarts=self._lowest_limit,
        )
        self._stack = AsyncExitStack()
        self._kinds = served_kinds({})
        self._is_open = False
        self._running: EmbeddedControlPlane | None = None
        # How many restarts each of the runs in progress allows.
        self._limits: list[int] = []
        # Names of jobs that nobody waits for, whatever their state.
        self._left: set[ObjectKey] = set()

    async def __aenter__(self) -> Self:
        if self._is_open:
            raise RuntimeError("the cluster is open already: make another one for a block in it")
        # Before it waits: another task may open the same cluster meanwhile.
        self._is_open = True
        async with AsyncExitStack() as stack:
            stack.callback(self._set_closed)
            self._kinds = await asyncio.to_thread(installed_kinds)
            self._running = await stack.enter_async_context(
                embedded_control_plane(self._kinds, self._options, keep_logs=True)
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._running = None
        return await self._stack.__aexit__(kind, error, traceback)

    def _set_closed(self) -> None:
        self._is_open = False

    @property
    def kubeconfig(self) -> Path:
        """Return the file with which kubectl and the clients of other packages find it."""
        return self._control_plane.kubeconfig

    @property
    def url(self) -> str:
        """Return the address of the API server."""
        return self._control_plane.cluster.server.url

    async def run(
        self,
        manifest: ManifestSource | Sequence[ManifestSource],
        *,
        namespace: str = "default",
        timeout_s: float | None = None,
        max_restarts: int | None = restart_limit.DEFAULT,
        on_line: OnLine | None = None,
    ) -> JobResult:
        """Create a job and the objects beside it, and return its result once it has ended.

        A replica that has been restarted more than ``max_restarts`` times ends the run, too. A job
        of the same name that has ended, or that an earlier run has left, is deleted first.

        Why it waits, if it does, is logged as a warning.

        :raises ConfigError: if an argument is wrong, there is not exactly one job, its pods could
            not start here, or an object is rejected.
        :raises TimeoutError: if it takes longer than ``timeout_s``, with what it waits for; the job
            is left as it is.
        """
        running = self._control_plane
        check_run_options(timeout_s, max_restarts, on_line)
        manifests = await asyncio.to_thread(lambda: list(_manifests(manifest)))
        jobs = [each for each in manifests if job_kind(self._kinds, each.obj)]
        if len(jobs) != 1:
            # A misspelt kind is none that is served.
            check(self._kinds, manifests, namespace)
            raise ConfigError(f"expected one job of a kind that dlctl serves, found {len(jobs)}")
        self._check(manifests, namespace)
        await self._delete_ended(as_new(jobs[0].obj, namespace))
        limits = FollowOptions(LogSelection(("all",)), max_restarts)
        with self._limited(max_restarts):
            (job,) = await submit(running.client, self._kinds, manifests, namespace)
            try:
                return await _followed(running, job, limits, timeout_s, on_line or _ignore)
            finally:
                self._left.add(job.key)

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace, and return once all of its objects are gone."""
        key = ObjectKey("", name)
        await self._control_plane.client.delete(NAMESPACES, key)
        await self._until_gone(NAMESPACES, key)

    @property
    def _control_plane(self) -> EmbeddedControlPlane:
        if self._running is None:
            raise RuntimeError("the cluster must be used inside its `with` block")
        return self._running

    def _check(self, manifests: Sequence[Manifest], namespace: str) -> None:
        # Only valid jobs show what they start.
        check(self._kinds, manifests, namespace)
        checks = StartChecks(self._kinds, manifests, namespace, self._options.images, alone=False)
        report(checks.problems(), ConfigError)

    @contextmanager
    def _limited(self, max_restarts: int | None) -> Iterator[None]:
        """Let the node start no program again, during the block, before the run can end it."""
        limits = [] if max_restarts is None else [max_restarts]
        self._limits += limits
        try:
            yield
        finally:
            for limit in limits:
                self._limits.remove(limit)

    def _lowest_limit(self) -> int | None:
        # The node does not know whose pod it is: with another run's limit it only waits longer.
        return min(self._limits, default=None)

    async def _delete_ended(self, manifest: JSON) -> None:
        """Delete a job of the name that nobody waits for: a notebook runs a cell again."""
        kind = job_kind(self._kinds, manifest)
        metadata = manifest["metadata"]
        key = ObjectKey(metadata["namespace"], metadata.get("name") or "")
        if kind is None or not key.name:
            return
        client = self._control_plane.client
        try:
            found = await client.get(kind.resource, key, dict[str, Any])
            if key not in self._left and not JobSnapshot.of(kind, found).is_finished:
                raise ConfigError(f"{kind.singular} {key} is still running: choose another name")
            self._left.discard(key)
            await client.delete(kind.resource, key, propagation="Foreground")
        except NotFoundError:
            return
        await self._until_gone(kind.resource, key)

    async def _until_gone(self, resource: Resource, key: ObjectKey) -> None:
        with suppress(NotFoundError):
            while True:
                await self._control_plane.client.get(resource, key, dict[str, Any])
                await asyncio.sleep(_PAUSE_S)


def _manifests(source: object) -> Iterable[Manifest]:
    """Yield the objects of any form of manifest; text of several lines or in braces is YAML."""
    if isinstance(source, Mapping):
        yield python_manifest(source)
    elif isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        yield from parse(source, "manifest")
    elif isinstance(source, str | Path):
        yield from load([str(source)])
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        for each in source:
            yield from _manifests(each)
    else:
        raise ConfigError(
            f"{source!r} is no manifest: give an object, text, a path, or a list of these"
        )


async def _followed(
    running: EmbeddedControlPlane,
    job: SubmittedJob,
    limits: FollowOptions,
    timeout_s: float | None,
    on_line: OnLine,
) -> JobResult:
    """Return the result of a job that has been created.

    :raises TimeoutError: if it takes too long; the message says what it waits for.
    """
    output = _Output(on_line)
    follower = Follower(running.client, running.cluster.run_dir, [job], limits)

    def closing(end: RunEnd) -> str:
        directory = running.cluster.run_dir
        lines = [*closing_lines(follower.progress[0], end, follower.last_lines)]
        lines += full_disk_lines(directory)
        if not follower.progress[0].has_succeeded:
            lines += noexec_lines(directory)
        return "\n".join(lines)

    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            # Exceptions of ``on_line`` are among them.
            with unwrap_exception_groups():
                await follower.follow(output)
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(closing(RunEnd(timeout_s=timeout_s))) from None
    try:
        found = await running.client.get(job.kind.resource, job.key, dict[str, Any])
    except NotFoundError:
        found = {}
    return JobResult(
        kind=job.kind.resource.kind,
        name=job.key.name,
        namespace=job.key.namespace,
        succeeded=follower.progress[0].has_succeeded,
        message=closing(RunEnd(max_restarts=limits.max_restarts)),
        status=found.get("status") or {},
        logs={name: "".join(f"{line}\n" for line in lines) for name, lines in output.lines.items()},
    )


def _ignore(replica: str, line: str) -> None:
    """Show nothing."""


@attrs.define(eq=False)
class _Output:
    """A view that keeps the output of a job's replicas."""

    on_line: OnLine
    lines: dict[str, deque[str]] = attrs.field(factory=dict)
    _notice: str = ""

    def show(self, jobs: Sequence[JobProgress], now: object) -> None:
        """Log why the job does not run, whenever that changes; the result has the rest."""
        for job in jobs:
            if job.notice and job.notice != self._notice:
                logger.warning("%s: %s", job, job.notice)
            self._notice = job.notice

    def show_message(self, text: object) -> None:
        """Show nothing: nobody interrupts it."""

    async def log_lines(
        self, job: JobProgress, replica: str, lines: Sequence[str], unfinished: str
    ) -> None:
        self.lines.setdefault(replica, deque(maxlen=_MAX_LINES)).extend(lines)
        for line in lines:
            self.on_line(replica, line)

"""The cluster of a command, as kubectl would choose it, and the jobs in it."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs

from dlctl.api.meta import BATCH_JOBS, MANAGED_BY_SELECTOR, PODS, ObjectKey
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod
from dlctl.cli.embedded.named_clusters import NamedCluster, running_clusters
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.names import JobName, known_kinds, parse_name, parse_names
from dlctl.cli.suggestions import closest
from dlctl.clock import SystemClock
from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError, DlctlError
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.kube.errors import ForbiddenError, NotFoundError, RequestError, UnauthorizedError
from dlctl.tasks import map_all

_PARALLEL_REQUESTS = 12
# About three seconds: a person waits for the answer.
_MAX_RETRIES = 5
_WHERE_JOBS_ARE = "; `dlctl get` lists its jobs, and -n chooses another namespace"


class JobNotFoundError(DlctlError):
    """The namespace has no job of this name."""


class RejectedCredentialsError(DlctlError):
    """The user is not known to the cluster, or no longer."""


@attrs.frozen
class TargetCluster:
    """A client, the served kinds, and the namespace of the command: empty for all."""

    client: Client
    kinds: Sequence[Kind]
    namespace: str
    clock: SystemClock = attrs.field(factory=SystemClock)

    async def jobs(self, kinds: Sequence[Kind]) -> list[JobSnapshot]:
        """Return the jobs of these kinds, by namespace, kind and name."""
        of_kinds = await self._of_each(kinds, self._list)
        found = [job for jobs in of_kinds for job in sorted(jobs, key=lambda job: job.key)]
        return sorted(found, key=lambda job: job.key.namespace)

    async def job(self, name: JobName) -> JobSnapshot:
        """Return the job that a command names.

        :raises JobNotFoundError: if there is none.
        :raises ConfigError: if the name alone does not say which.
        """
        found = [
            job for jobs in await self._of_each(name.kinds, self._get(name.name)) for job in jobs
        ]
        if not found:
            likely = name.likely_kind
            hint = f"; did you mean the kind {likely}, as in {likely}/NAME?" if likely else ""
            hint = hint or await self._similar_job(name) or _WHERE_JOBS_ARE
            raise JobNotFoundError(f"namespace {self.namespace} has no {name.description}{hint}")
        if len(found) > 1:
            raise ConfigError(
                f"{name.name} is the name of {' and '.join(map(str, found))}: write KIND/NAME"
            )
        return found[0]

    async def _similar_job(self, name: JobName) -> str:
        """Return which job a name may be meant for, as the end of a message; empty without one."""
        try:
            jobs = {job.key.name: job for job in await self.jobs(name.kinds)}
        except RequestError:
            return ""
        owners = [each for each in jobs if name.name.startswith(f"{each}-")]
        if owners:
            return f"; did you mean the job of this pod, {jobs[max(owners, key=len)]}?"
        close = closest(name.name, jobs)
        return f"; did you mean {jobs[close]}?" if close else ""

    async def refresh(self, job: JobSnapshot) -> JobSnapshot | None:
        """Return the job as it is now, or None if it is gone or another has its name."""
        with suppress(NotFoundError):
            manifest = await self.client.get(job.kind.resource, job.key, dict[str, Any])
            now = JobSnapshot.of(job.kind, manifest)
            return now if now.uid == job.uid else None
        return None

    async def pods(self, job: JobSnapshot) -> list[Pod]:
        """Return the pods of a job, and those of its launcher's batch/v1 Job."""
        owners = {job.uid}
        if job.kind.creates_launcher_jobs:
            jobs = await self.client.list(
                BATCH_JOBS,
                BatchJob,
                namespace=job.key.namespace,
                label_selector=MANAGED_BY_SELECTOR,
            )
            found = (one.metadata for one in jobs.items)
            owners |= {one.uid for one in found if one.controller_uid == job.uid}
        page = await self.client.list(
            PODS, Pod, namespace=job.key.namespace, label_selector=MANAGED_BY_SELECTOR
        )
        return [pod for pod in page.items if pod.metadata.controller_uid in owners]

    async def _of_each(
        self, kinds: Sequence[Kind], ask: "Callable[[Kind], Awaitable[Sequence[JobSnapshot]]]"
    ) -> list[Sequence[JobSnapshot]]:
        """Return the answers; a kind that the cluster lacks or does not show has no jobs."""
        denied: list[ForbiddenError] = []

        async def answer(kind: Kind) -> Sequence[JobSnapshot]:
            try:
                return await ask(kind)
            except NotFoundError:
                return ()
            except ForbiddenError as error:
                denied.append(error)
                return ()

        answers = await map_all(answer, kinds, limit=_PARALLEL_REQUESTS)
        if denied and not any(answers):
            raise denied[0]
        return answers

    async def _list(self, kind: Kind) -> Sequence[JobSnapshot]:
        page = await self.client.list(kind.resource, dict[str, Any], namespace=self.namespace)
        return [JobSnapshot.of(kind, manifest) for manifest in page.items]

    def _get(self, name: str) -> "Callable[[Kind], Awaitable[Sequence[JobSnapshot]]]":
        async def get(kind: Kind) -> Sequence[JobSnapshot]:
            key = ObjectKey(self.namespace, name)
            return [JobSnapshot.of(kind, await self.client.get(kind.resource, key, dict[str, Any]))]

        return get


def add_kubeconfig_arguments(
    parser: argparse.ArgumentParser, *, all_namespaces: bool = False
) -> None:
    """Add the flags by which kubectl, too, chooses a cluster and a namespace."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--kubeconfig",
        metavar="PATH",
        help="file with the address of the cluster (default $KUBECONFIG, then ~/.kube/config)",
    )
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    group.add_argument(
        "-n", "--namespace", metavar="NAME", help="namespace (default: the context's)"
    )
    if all_namespaces:
        group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    parser.set_defaults(all_namespaces=False)


def run_in_cluster(
    args: argparse.Namespace, command: "Callable[[TargetCluster], Awaitable[int]]"
) -> int:
    """Run a command with the cluster of its arguments; return its exit code."""
    return asyncio.run(_run(args, command))


async def _run(
    args: argparse.Namespace, command: "Callable[[TargetCluster], Awaitable[int]]"
) -> int:
    try:
        cluster = await config.load(args.kubeconfig, args.context)
    except config.MissingKubeconfigError as error:
        raise ConfigError(f"{error}{_embedded_clusters()}") from None
    async with Client(cluster, user_agent="dlctl-cli", max_retries=_MAX_RETRIES) as client:
        namespace = "" if args.all_namespaces else args.namespace or client.namespace
        try:
            return await command(TargetCluster(client, installed_kinds(), namespace))
        except UnauthorizedError as error:
            raise RejectedCredentialsError(
                f"the API server does not accept the credentials of the kubeconfig ({error}): log "
                "in again, or choose another --context"
            ) from None


def _embedded_clusters() -> str:
    """Return how to use a cluster on this machine, as the end of a message."""
    for name in running_clusters():
        # The file is missing if the cluster was started with another path.
        if (path := NamedCluster.of(name).kubeconfig).is_file():
            return f"; that of the running cluster {name} is {path}"
    return "; `dlctl up` starts a cluster on this machine"


async def named_jobs(cluster: TargetCluster, words: Sequence[str]) -> list[JobSnapshot]:
    """Return the jobs of ``KIND NAME ...``, or of any number of NAME and KIND/NAME.

    :raises ConfigError: if a kind is unknown.
    """
    return [await cluster.job(name) for name in parse_names(words, known_kinds(cluster.kinds))]


def named_job(cluster: TargetCluster, text: str) -> Awaitable[JobSnapshot]:
    """Return the job of a NAME or KIND/NAME.

    :raises ConfigError: if the kind is unknown.
    """
    return cluster.job(parse_name(text, known_kinds(cluster.kinds)))

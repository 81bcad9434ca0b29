"""``dlctl port-forward``: ports of a job's replica, such as TensorBoard's, on this machine."""

import argparse
import asyncio
import datetime
import re
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey
from dlctl.api.objects.pods import Pod, PodPhase
from dlctl.cli.display.log_selection import chief_first
from dlctl.cli.jobs.cluster import TargetCluster, add_kubeconfig_arguments, run_in_cluster
from dlctl.cli.jobs.job_argument import add_job_argument
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.names import known_kinds, parse_replica
from dlctl.cli.jobs.replica_pods import replica_names
from dlctl.cli.jobs.waiting_lines import waiting_lines
from dlctl.errors import ConfigError, DlctlError, config_errors
from dlctl.kube.errors import RequestError
from dlctl.reconcilers.launcher_job.launcher_state import creation_order

_PORTS: Final = re.compile(r"(?:(\d*):)?(\d+)")
_MAX_PORT: Final = 65535


class EndedError(DlctlError):
    """The pod takes no connections any more."""


@attrs.frozen
class PortPair:
    """A port here, 0 for any that is free, and one in the pod."""

    local: int
    remote: int

    @classmethod
    def parse(cls, text: str) -> "PortPair":
        """Return the pair of ``PORT``, ``LOCAL:REMOTE`` or ``:REMOTE``."""
        found = _PORTS.fullmatch(text)
        local, remote = found.groups() if found else (None, "0")
        pair = cls(int(remote) if local is None else int(local or 0), int(remote))
        if not (0 < pair.remote <= _MAX_PORT and pair.local <= _MAX_PORT):
            forms = f"PORT, LOCAL:REMOTE or :REMOTE, with numbers up to {_MAX_PORT}"
            # As after a kind of its own: the words that follow the first one are ports.
            hint = "" if found else ", and a job of a kind as KIND/NAME"
            raise argparse.ArgumentTypeError(f"{text!r}: write {forms}{hint}")
        return pair


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Open ports of a replica on this machine until Ctrl-C. A replica that is restarted keeps "
        "its port: each connection goes to the pod that it has then."
    )
    add_job_argument(
        parser, "job", metavar="JOB[/REPLICA]", help="NAME or KIND/NAME; by default, its chief"
    )
    parser.add_argument(
        "ports",
        nargs="+",
        type=PortPair.parse,
        metavar="[LOCAL:]REMOTE",
        help="a port here and one of the replica; without LOCAL the same, with :REMOTE a free one",
    )
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on (%(default)s)")
    add_kubeconfig_arguments(parser)
    parser.set_defaults(command=lambda args: run_in_cluster(args, lambda it: forward(it, args)))


async def forward(cluster: TargetCluster, args: argparse.Namespace) -> int:
    """Listen on all ports until the command is interrupted."""
    name, replica = parse_replica(args.job, known_kinds(cluster.kinds))
    job = await cluster.job(name)
    pods = await cluster.pods(job)
    pod = pod_of(job, replica, pods)
    if reason := not_ready_reason(job, pod, pods, cluster.clock.now()):
        print(f"dlctl: {reason}", file=sys.stderr)
    async with AsyncExitStack() as listening:
        for pair in args.ports:
            connected = _Forward(cluster, pod, pair.remote).connected
            with config_errors(f"{args.address}:{pair.local}"):
                server = await asyncio.start_server(connected, args.address, pair.local)
            await listening.enter_async_context(server)
            port = server.sockets[0].getsockname()[1]
            print(f"{args.address}:{port} -> {pod.name}:{pair.remote}", flush=True)
        await asyncio.get_running_loop().create_future()
    return 0


def pod_of(job: JobSnapshot, replica: str, pods: Sequence[Pod] = ()) -> ObjectKey:
    """Return the pod of a replica, by default of the chief: of a launcher's Job, the newest.

    :raises ConfigError: if the job does not have the replica.
    """
    if not isinstance(job.job, Job):
        raise ConfigError(f"{job} is invalid, so it has no replicas: {job.job}")
    names = {str(each): job.job.child_name(each) for each in job.job.replicas}
    wanted = replica or chief_first(list(names))[0]
    if wanted not in names:
        raise ConfigError(f"{job} has no replica {wanted}; it has {', '.join(names)}")
    known = replica_names(job, pods)
    made = [pod for pod in pods if known[pod.metadata.name] == wanted]
    name = max(made, key=creation_order).metadata.name if made else names[wanted]
    return ObjectKey(job.key.namespace, name)


def not_ready_reason(
    job: JobSnapshot, key: ObjectKey, pods: Sequence[Pod], now: datetime.datetime
) -> str:
    """Return why a pod does not take connections yet; empty if it runs.

    :raises EndedError: if it never will.
    """
    pod = next((pod for pod in pods if pod.metadata.key == key), None)
    if pod is not None and pod.phase is PodPhase.RUNNING:
        return ""
    state = f"pod {key.name} is {pod.phase}" if pod else f"there is no pod {key.name}"
    if job.is_decided:
        raise EndedError(f"{state}, and {job} has ended: {job.state}")
    why = next(waiting_lines(job, pods, (), now), "")
    return f"{'; '.join(filter(None, (state, why)))}; connections fail until it runs"


@attrs.frozen
class _Forward:
    """One port of a pod."""

    cluster: TargetCluster
    pod: ObjectKey
    port: int

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; its failure ends no other."""
        try:
            await self.cluster.client.forward_port(self.pod, self.port, reader, writer)
        except RequestError as error:
            print(f"dlctl: {self.pod.name}:{self.port}: {error}", file=sys.stderr)
        finally:
            writer.close()

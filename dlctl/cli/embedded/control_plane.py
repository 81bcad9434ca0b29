"""The embedded cluster with our kinds and controller, as a context manager.

Imports the packages of the extra ``local``: commands import it only after checking for them.
"""

import asyncio
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, ObjectKey
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.directory_options import deleted_claims_line, shared_files_lines
from dlctl.cli.embedded.machine_limits import allow_open_files, check_loopback
from dlctl.cli.interrupts import Interrupts
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import kind_crds
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.data_directory import DataDirectory
from dlctl.local.node.agent.sandboxes import Network
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.kubelet import KubeletOptions
from dlctl.manager import Manager

# Caps long grace periods: a user is waiting.
MAX_GRACE_S: Final = 30.0


@attrs.frozen
class EmbeddedControlPlane:
    """The embedded cluster, and a client for the command's own use."""

    cluster: EmbeddedCluster
    client: Client

    @property
    def kubeconfig(self) -> Path:
        return self.cluster.kubeconfig_path

    async def end_pods(self, interrupts: Interrupts, show: Callable[[str], None]) -> None:
        """Let all programs save their work and end, as when a node shuts down; say so if any run.

        A second signal ends them at once.
        """
        if not self.cluster.node.is_idle:
            again = "; Ctrl-C again ends them at once" if interrupts.caught else ""
            show(f"the programs have up to {MAX_GRACE_S:g} s to end{again}")
        await self.cluster.node.shut_down(MAX_GRACE_S)


@asynccontextmanager
async def embedded_control_plane(
    kinds: Sequence[Kind],
    options: ClusterOptions,
    *,
    controller: bool = True,
    keep_logs: bool = False,
    run_dir: Path | None = None,
    data: DataDirectory | None = None,
) -> AsyncIterator[EmbeddedControlPlane]:
    """Run the cluster for the duration of the block; no process of it is left afterwards.

    :raises ConfigError: if the port is in use, the requested network is unavailable, pods could
        not be given the name of a directory, or the machine lacks a loopback address or open files.
    """
    _check_encodable(options, run_dir)
    check_loopback()
    allow_open_files()
    node = KubeletOptions(
        images=options.images,
        network=options.network,
        keep_logs=keep_logs,
        node_labels=options.node_labels,
        hand_out_gpus=options.hand_out_gpus,
        log_dir=options.log_dir,
        immediate_restarts=options.immediate_restarts,
        directories=options.directories,
    )
    async with AsyncExitStack() as stack:
        try:
            cluster = await stack.enter_async_context(
                EmbeddedCluster(node, run_dir=run_dir, data=data, port=options.port)
            )
        except OSError as error:
            where = f" on port {options.port}" if options.port else ""
            reason = f"{error.filename}: {error.strerror}" if error.filename else error
            raise ConfigError(f"the embedded cluster cannot start{where}: {reason}") from error
        client = await stack.enter_async_context(Client(cluster.config(), user_agent="dlctl-cli"))
        for definition in (each for kind in kinds for each in kind_crds(kind)):
            await _install(client, definition)
        if controller:
            await stack.enter_async_context(_controller(cluster, kinds))
        stack.enter_context(_directories_explained(cluster, options.directories))
        yield EmbeddedControlPlane(cluster, client)


def _check_encodable(options: ClusterOptions, run_dir: Path | None) -> None:
    """Check the paths that pods get in messages and variables, which are text.

    :raises ConfigError: if one is not UTF-8.
    """
    directories = options.directories
    mounted = [path for mount in directories.mounts for path in (mount.source, mount.target)]
    claims = [directories.claims] if directories.claims else []
    temporary = run_dir.parent if run_dir else Path(tempfile.gettempdir())
    places = [*options.images.values(), directories.working_dir, *mounted, *claims, temporary]
    for text in map(str, places):
        if not _is_utf8(text):
            raise ConfigError(f"{text!r} is not UTF-8, as pods need it: rename it, or use another")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _install(client: Client, definition: JSON) -> None:
    """Create a definition, or bring the one of a former cluster up to date."""
    try:
        await client.create(CRDS, "", definition)
    except AlreadyExistsError:
        key = ObjectKey("", definition["metadata"]["name"])
        await client.patch(CRDS, key, {"spec": definition["spec"]})


@asynccontextmanager
async def _controller(cluster: EmbeddedCluster, kinds: Sequence[Kind]) -> AsyncIterator[None]:
    """Run the controller with its own client; its failure cancels the block and is raised."""
    try:
        async with (
            Client(cluster.config(), user_agent="dlctl-controller") as client,
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(Manager(client, kinds).run(asyncio.Event()))
            yield
            # Reconciles in progress are worthless: the cluster ends with the controller.
            running.cancel()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures


@contextmanager
def _directories_explained(
    cluster: EmbeddedCluster, directories: NodeDirectories
) -> Iterator[None]:
    """Print which mounts are partial here, and afterwards which claims are deleted."""
    if not cluster.network.isolated:
        for line in shared_files_lines(directories.mounts, cluster.network.reason):
            print(line, file=sys.stderr)
    try:
        yield
    finally:
        if line := deleted_claims_line(cluster.run_dir):
            print(line, file=sys.stderr)


def usage(kubeconfig: Path) -> str:
    """Return the shell commands that use the cluster, and the lines of Python."""
    path = shlex.quote(str(kubeconfig))
    return f"""\
In another shell:
  export KUBECONFIG={path}
  kubectl apply -f job.yaml
  dlctl get
  dlctl logs -f NAME
In Python:
  kubeflow.training.TrainingClient(config_file={str(kubeconfig)!r})
  kubernetes.config.load_kube_config({str(kubeconfig)!r})"""


def describe_network(network: Network) -> str:
    if network.isolated:
        text = "isolated: every pod has its own address and ports"
        if network.no_internet:
            text += (
                f"; pods cannot reach the Internet ({network.no_internet}); "
                "with --network host they can"
            )
        return text
    return f"host: pods share this machine's ports ({network.reason})"

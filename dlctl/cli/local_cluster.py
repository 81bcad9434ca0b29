"""A cluster of this machine with our kinds and our controller in it, for a block.

Imports the laptop mode: commands import it when they run, after a look whether it is installed.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs

from dlctl.api.meta import CRDS
from dlctl.cli.local_options import LocalOptions
from dlctl.dialects.kind_crds import kind_crds
from dlctl.dialects.kinds import Kind
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.local.cluster import LocalCluster
from dlctl.local.node.node import NodeOptions
from dlctl.local.node.sandboxes import Network
from dlctl.manager import Manager


@attrs.frozen
class LocalControlPlane:
    """The cluster, and a client of it for the command's own use."""

    cluster: LocalCluster
    client: Client

    @property
    def kubeconfig(self) -> Path:
        return self.cluster.kubeconfig_path


@asynccontextmanager
async def local_control_plane(
    kinds: Sequence[Kind],
    options: LocalOptions,
    *,
    controller: bool = True,
    keep_logs: bool = False,
) -> AsyncIterator[LocalControlPlane]:
    """Run everything for the duration of the block; then no process of it is left.

    :raises ConfigError: if the port is taken, or the network asked for is not to be had.
    """
    node = NodeOptions(images=options.images, network=options.network, keep_logs=keep_logs)
    async with AsyncExitStack() as stack:
        try:
            cluster = await stack.enter_async_context(LocalCluster(node, port=options.port))
        except OSError as error:
            raise ConfigError(f"no API server on port {options.port}: {error}") from error
        client = await stack.enter_async_context(Client(cluster.config(), user_agent="dlctl-cli"))
        for definition in (each for kind in kinds for each in kind_crds(kind)):
            await client.create(CRDS, "", definition)
        if controller:
            await stack.enter_async_context(_controller(cluster, kinds))
        yield LocalControlPlane(cluster, client)


@asynccontextmanager
async def _controller(cluster: LocalCluster, kinds: Sequence[Kind]) -> AsyncIterator[None]:
    """Run the controller as a client of its own; its failure cancels the block and comes out."""
    try:
        async with (
            Client(cluster.config(), user_agent="dlctl-controller") as client,
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(Manager(client, kinds).run(asyncio.Event()))
            yield
            # What it has begun is of no use to a cluster that ends with it.
            running.cancel()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures


def usage(kubeconfig: Path) -> str:
    """Return what to type to use the cluster."""
    return f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}\n  kubectl get pods --watch"


def describe_network(network: Network) -> str:
    if network.isolated:
        return "isolated: every pod has an address and ports of its own"
    return f"host: pods share this machine's ports ({network.reason})"

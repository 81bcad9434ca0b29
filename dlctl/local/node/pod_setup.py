"""Set up a pod on the node before its containers start: address, names, volumes.

Each step may be retried, because what is missing, such as a ConfigMap, may be created later.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs

from dlctl.backoff import Backoff
from dlctl.clock import Clock
from dlctl.local.node.agent.sandboxes import Sandboxes, StartError
from dlctl.local.node.api_access import ApiAccess, ServiceAccountFiles
from dlctl.local.node.api_types import NodePod, NodeService
from dlctl.local.node.containers.control_groups import ControlGroups
from dlctl.local.node.containers.devices import DevicePool
from dlctl.local.node.containers.downward_api import PodPlacement
from dlctl.local.node.containers.launch import PodRuntime
from dlctl.local.node.containers.log_times import LogTimes
from dlctl.local.node.containers.logs import LogArchive
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.containers.substitution import service_names
from dlctl.local.node.containers.volumes import VolumeManager
from dlctl.local.node.directories import NodeDirectories
from dlctl.local.node.network.addresses import LOOPBACK_IP, NODE_IP, AddressPool
from dlctl.local.node.network.hosts_files import HostsFiles, PodAddress
from dlctl.local.node.node_object import machine_capacity
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.pod_events import PodEvents

logger = logging.getLogger(__name__)


@attrs.frozen
class NodeContext:
    """The parts of a node that all pods share."""

    node_name: str
    run_dir: Path
    images: Mapping[str, Path]
    crash_loop: Backoff
    immediate_restarts: Callable[[], int | None]
    sandboxes: Sandboxes
    names: HostsFiles
    addresses: AddressPool
    devices: DevicePool
    groups: ControlGroups
    services: Iterable[NodeService]
    etc: Mapping[str, Path]
    pod_api: PodApi
    events: PodEvents
    clock: Clock
    log_times: LogTimes
    keep_logs: bool = False
    log_archive: LogArchive | None = None
    directories: NodeDirectories = attrs.field(factory=NodeDirectories)
    # None where pods cannot reach the API server.
    api: ApiAccess | None = None

    @property
    def isolated(self) -> bool:
        return self.sandboxes.network.isolated

    @property
    def host_ip(self) -> str:
        return NODE_IP if self.isolated else LOOPBACK_IP


@attrs.define
class PodSetup:
    """The resources of one pod; :meth:`tear_down` releases them, however far the set-up came.

    Its names and its IP stay until :meth:`forget`, when the object is deleted.
    """

    pod: NodePod
    context: NodeContext
    paths: PodPaths
    _allocated_ip: str = attrs.field(init=False, default="")
    _volume_manager: VolumeManager | None = attrs.field(init=False, default=None)

    async def join_network(self) -> str:
        """Give the pod an IP, and publish its names to itself and to the others.

        :raises NoAddressError: if all addresses are in use.
        :raises StartError: if its network cannot be set up.
        """
        pod, context = self.pod, self.context
        uid = pod.metadata.uid
        ip = context.host_ip
        if context.isolated and not pod.spec.host_network:
            ip = self._allocated_ip = self._allocated_ip or context.addresses.allocate()
            await context.sandboxes.create(uid, ip)
        address = PodAddress(
            namespace=pod.metadata.namespace or "",
            hostname=pod.hostname,
            ip=ip,
            hosts_path=self.paths.hosts,
            subdomain=pod.spec.subdomain or "",
            searches=(pod.spec.dns_config and pod.spec.dns_config.searches) or (),
            labels=pod.metadata.labels or {},
            aliases=[
                f"{alias.ip}\t{' '.join(alias.hostnames or ())}"
                for alias in pod.spec.host_aliases or ()
            ],
            ready=not pod.has_readiness_probe,
        )
        await context.names.add(uid, address)
        return ip

    async def create_volumes(self, ip: str, warn: Callable[[str, str], None]) -> PodRuntime:
        """Create the volumes, and allocate devices.

        :raises MissingReferenceError: if an object that the pod refers to does not exist.
        :raises UnsupportedVolumeError: if the node cannot provide a volume.
        :raises NoDeviceError: if too few devices are free.
        :raises OSError: if the machine has no room.
        """
        context, pod = self.context, self.pod
        namespace = pod.metadata.namespace or ""
        place = PodPlacement(context.node_name, ip, context.host_ip, machine_capacity())
        sources = await context.pod_api.sources(pod)
        claims = context.directories.claims_in(context.run_dir) / namespace
        manager = self._volume_manager = VolumeManager(
            pod, place, sources, self.paths.volumes, claims
        )
        volumes = await asyncio.to_thread(manager.create_all)
        await context.pod_api.bind_claims(pod)
        account = await self._account()
        loop = asyncio.get_running_loop()

        def warn_from_thread(reason: str, text: str) -> None:
            loop.call_soon_threadsafe(warn, reason, text)

        return PodRuntime(
            pod=pod,
            place=place,
            paths=self.paths,
            isolated=context.isolated,
            sources=sources,
            volumes=volumes,
            directories=context.directories,
            etc=context.etc,
            names={}
            if context.isolated
            else service_names(context.services, namespace, pod.spec.subdomain or ""),
            api=context.api.env if context.api else {},
            account=account,
            device_env=context.devices.allocate(pod),
            warn=warn_from_thread,
        )

    async def refresh_volumes(self) -> None:
        """Update the volumes, if they have been created."""
        if self._volume_manager is not None:
            sources = await self.context.pod_api.sources(self.pod)
            await asyncio.to_thread(self._volume_manager.refresh, sources)

    async def _account(self) -> ServiceAccountFiles | None:
        """Write the files of the pod's service account, if it has one."""
        if (api := self.context.api) is None:
            return None
        token = await self.context.pod_api.token(self.pod)
        if not token:
            return None
        account = ServiceAccountFiles(self.paths.account)
        await asyncio.to_thread(account.write, api, token, self.pod.metadata.namespace or "")
        return account

    async def tear_down(self) -> None:
        """Remove the pod's network, and release its devices."""
        uid = self.pod.metadata.uid
        self.context.names.set_finished(uid)
        self.context.devices.release(uid)
        if not self._allocated_ip:
            return
        try:
            await self.context.sandboxes.remove(uid)
        except StartError as failure:
            logger.warning(
                "could not remove the network of a pod",
                extra={"key": str(self.pod.key), "error": str(failure)},
            )
            # Never released: what is left of the network still has it.
            self._allocated_ip = ""

    def forget(self) -> None:
        """Release the pod's names and its IP."""
        self.context.names.remove(self.pod.metadata.uid)
        if self._allocated_ip:
            self.context.addresses.release(self._allocated_ip)

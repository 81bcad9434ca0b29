"""Name resolution of pods: one hosts file per pod, rewritten as services and pods change.

The name of a headless service stands for the pods it selects, that of a service with a cluster IP
for the first ready pod: there is no load balancing and no port mapping. A terminated pod keeps its
names until its object is deleted, unless another pod takes them over: others may still wait for
them. Files are changed in place, since containers mount them over ``/etc/hosts``.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import attrs

from dlctl.api.meta import UID
from dlctl.local.node.api_access import IN_CLUSTER_IP
from dlctl.local.node.api_types import NodeService

logger = logging.getLogger(__name__)

DOMAIN: Final = "cluster.local"
_LOOPBACK: Final = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_API: Final = (
    f"{IN_CLUSTER_IP}\tkubernetes.default.svc.{DOMAIN} kubernetes.default.svc kubernetes.default\n"
)
# A job starts and stops many pods at once; one rewrite covers all of them.
_DEBOUNCE_S: Final = 0.02
# After a file that could not be written, such as on a full disk.
_RETRY_S: Final = 1.0


@attrs.define
class PodAddress:
    """A pod with an address; ``ready`` follows its readiness probes."""

    namespace: str
    hostname: str
    ip: str
    hosts_path: Path
    subdomain: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    # Domains in which the pod may omit the end of a name, beside that of its namespace.
    searches: Sequence[str] = ()
    # Lines of the pod's own.
    aliases: Sequence[str] = ()
    ready: bool = False
    finished: bool = False

    @property
    def own_line(self) -> str:
        """Return the line of the host name, after the full name if there is one, as in kubelets."""
        full = f"{self.hostname}.{self.subdomain}.{self.namespace}.svc.{DOMAIN}"
        names = [full, self.hostname] if self.subdomain else [self.hostname]
        return f"{self.ip}\t{' '.join(names)}"

    @property
    def domains(self) -> tuple[str, ...]:
        return (f"{self.namespace}.svc.{DOMAIN}", *self.searches)

    def selected_by(self, service: NodeService) -> bool:
        selector = service.spec.selector
        return bool(selector) and all(
            self.labels.get(name) == value for name, value in (selector or {}).items()
        )


def qualified(name: str, namespace: str) -> list[str]:
    """Return the forms of a service's name that are valid in every namespace."""
    return [f"{name}.{namespace}{end}" for end in ("", ".svc", f".svc.{DOMAIN}")]


def service_lines(
    services: Iterable[NodeService], pod_addresses: Iterable[PodAddress]
) -> list[str]:
    """Return the lines of a hosts file that are valid in every namespace, longest name first."""
    pods = list(pod_addresses)
    lines = []
    for service in sorted(services, key=lambda service: service.key):
        name, namespace = service.metadata.name, service.metadata.namespace or ""
        chosen = [pod for pod in pods if pod.namespace == namespace and pod.selected_by(service)]
        if not service.spec.publish_not_ready_addresses:
            chosen = [pod for pod in chosen if pod.ready or pod.finished]
        serving = [pod for pod in chosen if not pod.finished] or chosen
        if service.spec.cluster_ip not in (None, "", "None"):
            chosen = serving = serving[:1]
        for pod in chosen:
            names = qualified(name, namespace) if pod in serving else []
            if pod.subdomain == name:
                names += qualified(f"{pod.hostname}.{name}", namespace)
            if names:
                lines.append(f"{pod.ip}\t{' '.join(reversed(names))}")
    return lines


class HostsFiles:
    """The hosts files of a node's pods; only :meth:`run` and :meth:`add` write them."""

    def __init__(self, services: Iterable[NodeService], machine_lines: Sequence[str] = ()) -> None:
        self._services = services
        # Last, so that names of the cluster win.
        self._machine_lines = machine_lines
        self._pod_addresses: dict[UID, PodAddress] = {}
        self._written: dict[UID, str] = {}
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()

    async def add(self, uid: UID, pod_address: PodAddress) -> None:
        """Add a pod; on return it can resolve its own names, the others can soon.

        :raises OSError: if its file cannot be written.
        """
        self._pod_addresses[uid] = pod_address
        failures = await self._write([uid])
        self._changed.set()
        if uid in failures:
            raise failures[uid]

    def remove(self, uid: UID) -> None:
        self._pod_addresses.pop(uid, None)
        self._written.pop(uid, None)
        self._changed.set()

    def set_ready(self, uid: UID, *, ready: bool) -> None:
        pod = self._pod_addresses.get(uid)
        if pod is not None and pod.ready != ready:
            pod.ready = ready
            self._changed.set()

    def set_finished(self, uid: UID) -> None:
        if (pod := self._pod_addresses.get(uid)) is not None:
            pod.finished = True
            self._changed.set()

    def services_changed(self) -> None:
        self._changed.set()

    async def run(self) -> NoReturn:
        """Keep the files up to date until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(_DEBOUNCE_S)
            self._changed.clear()
            failures = await self._write(list(self._pod_addresses))
            for error in failures.values():
                # The pod may have been removed meanwhile, and its directory with it.
                if not isinstance(error, FileNotFoundError):
                    logger.warning("hosts file not written", extra={"error": str(error)})
                    asyncio.get_running_loop().call_later(_RETRY_S, self._changed.set)

    async def _write(self, uids: Iterable[UID]) -> dict[UID, OSError]:
        """Write the files that differ; return the errors of those that cannot be written."""
        async with self._writing:
            texts = self._texts(uids)
            failures = await asyncio.to_thread(_rewrite_all, texts)
            for uid, (_, text) in texts.items():
                if uid in self._pod_addresses and uid not in failures:
                    self._written[uid] = text
            return failures

    def _texts(self, uids: Iterable[UID]) -> dict[UID, tuple[Path, str]]:
        shared = service_lines(self._services, self._pod_addresses.values())
        short: dict[tuple[str, ...], list[str]] = {}
        texts = {}
        for uid in uids:
            if (pod := self._pod_addresses.get(uid)) is None:
                continue
            if pod.domains not in short:
                short[pod.domains] = [
                    line for domain in pod.domains for line in _short_lines(shared, domain)
                ]
            own = (pod.own_line, *pod.aliases)
            lines = [*own, *short[pod.domains], *shared, *self._machine_lines, ""]
            text = _LOOPBACK + _API + "\n".join(lines)
            if text != self._written.get(uid):
                texts[uid] = (pod.hosts_path, text)
        return texts


def _short_lines(shared: Iterable[str], domain: str) -> list[str]:
    """Return the lines for the names that are valid without a domain, within it."""
    suffix = f".{domain}"
    lines = []
    for line in shared:
        ip, _, names = line.partition("\t")
        short = [name.removesuffix(suffix) for name in names.split() if name.endswith(suffix)]
        if short:
            lines.append(f"{ip}\t{' '.join(short)}")
    return lines


def _rewrite_all(texts: Mapping[UID, tuple[Path, str]]) -> dict[UID, OSError]:
    failures = {}
    for uid, (path, text) in texts.items():
        try:
            _rewrite(path, text.encode())
        except OSError as error:
            failures[uid] = error
    return failures


def _rewrite(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Never empty in between: a program may be reading.
        os.pwrite(fd, content, 0)
        os.ftruncate(fd, len(content))
    finally:
        os.close(fd)

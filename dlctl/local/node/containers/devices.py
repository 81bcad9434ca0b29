"""GPUs of this machine: found by their vendor's program, handed out to one pod at a time.

Programs are restricted to their devices by a variable, as by a job scheduler without containers. A
pod that requests none sees none. Devices that dlctl itself may not use are not handed out.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.errors import DlctlError
from dlctl.local.node.api_types import NodePod
from dlctl.local.node.resource_requests import (
    concurrent_containers,
    container_requests,
    pod_requests,
)

_TIMEOUT_S: Final = 20.0


class NoDeviceError(DlctlError):
    """The devices that a pod requests are in use; the scheduler avoids this."""


@attrs.frozen
class Device:
    """A device by the index that its vendor's libraries use, and by its other names."""

    index: str
    names: tuple[str, ...] = ()


@attrs.frozen
class DeviceType:
    """A kind of devices: the resource, and the variables that select some of them."""

    resource: str
    variable: str
    command: tuple[str, ...]
    parse: Callable[[str], Iterable[Device]]
    settings: Mapping[str, str] = attrs.field(factory=dict)

    def find(self) -> tuple[str, ...]:
        """Return the indexes of the devices that dlctl may use; blocking."""
        if (program := shutil.which(self.command[0])) is None:
            return ()
        try:
            done = subprocess.run(
                [program, *self.command[1:]],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
            found = list(self.parse(done.stdout))
        except (OSError, subprocess.SubprocessError, ValueError):
            # The vendor's program without its driver, or in another version.
            return ()
        return visible(found, os.environ.get(self.variable))

    def env(self, indexes: Iterable[str]) -> dict[str, str]:
        return {**self.settings, self.variable: ",".join(indexes)}


def visible(devices: Iterable[Device], listed: str | None) -> tuple[str, ...]:
    """Return the indexes of those that a variable lists, by index or name; all without one."""
    if listed is None:
        return tuple(device.index for device in devices)
    wanted = [word.strip() for word in listed.split(",") if word.strip()]
    return tuple(
        device.index
        for device in devices
        if device.index in wanted
        or any(name.startswith(word) for word in wanted for name in device.names)
    )


def _nvidia_devices(listing: str) -> Iterable[Device]:
    for line in listing.splitlines():
        index, uuid = line.split(",")
        yield Device(str(int(index)), (uuid.strip(),))


def _amd_devices(listing: str) -> Iterable[Device]:
    cards = [name for name in json.loads(listing) if name.startswith("card")]
    # The libraries count from 0, whatever numbers the cards have.
    return [Device(str(index)) for index in range(len(cards))]


DEVICE_TYPES: Final = (
    DeviceType(
        "nvidia.com/gpu",
        "CUDA_VISIBLE_DEVICES",
        ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"),
        _nvidia_devices,
        # The order of nvidia-smi; otherwise index 0 is the fastest one.
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    ),
    DeviceType(
        "amd.com/gpu", "HIP_VISIBLE_DEVICES", ("rocm-smi", "--showid", "--json"), _amd_devices
    ),
)
DEVICE_RESOURCES: Final = frozenset(kind.resource for kind in DEVICE_TYPES)


def find_devices() -> dict[str, tuple[str, ...]]:
    """Return the devices of this machine by resource, without those it does not have; blocking."""
    found = {kind.resource: kind.find() for kind in DEVICE_TYPES}
    return {resource: indexes for resource, indexes in found.items() if indexes}


class DevicePool:
    """The devices of a node, and the pods that hold them."""

    def __init__(self, devices: Mapping[str, tuple[str, ...]]) -> None:
        self._devices = devices
        self._held: dict[UID, dict[str, tuple[str, ...]]] = {}

    def allocate(self, pod: NodePod) -> dict[str, dict[str, str]]:
        """Return the variables of each container; the pod holds its devices until released.

        :raises NoDeviceError: if too few are free.
        """
        uid, wanted = pod.metadata.uid, pod_requests(pod)
        if uid not in self._held:
            self._held[uid] = {
                resource: self._take(resource, wanted.get(resource, 0))
                for resource in self._devices
            }
        return self._env_by_container(pod, self._held[uid])

    def release(self, uid: UID) -> None:
        self._held.pop(uid, None)

    def _take(self, resource: str, count: int) -> tuple[str, ...]:
        taken = {index for held in self._held.values() for index in held[resource]}
        free = [index for index in self._devices[resource] if index not in taken]
        if count > len(free):
            raise NoDeviceError(f"{count} {resource} requested, {len(free)} free")
        return tuple(free[:count])

    def _env_by_container(
        self, pod: NodePod, held: Mapping[str, tuple[str, ...]]
    ) -> dict[str, dict[str, str]]:
        env: dict[str, dict[str, str]] = {}
        together, one_by_one = concurrent_containers(pod)
        for kind in DEVICE_TYPES:
            if kind.resource not in self._devices:
                continue
            mine = held[kind.resource]
            start = 0
            for container in together:
                count = container_requests(container).get(kind.resource, 0)
                env.setdefault(container.name, {}).update(kind.env(mine[start : start + count]))
                start += count
            for container in one_by_one:
                count = container_requests(container).get(kind.resource, 0)
                env.setdefault(container.name, {}).update(kind.env(mine[:count]))
        return env

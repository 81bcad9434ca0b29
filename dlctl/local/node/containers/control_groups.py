"""Limits of memory and CPU time by control groups, where the machine lets dlctl create them.

A group of dlctl's own has one group for each run of a container. Version 2 of the interface is
used, or version 1 where that has the controllers. Without either, limits are not enforced.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from dlctl.api.quantities import parse_quantity
from dlctl.local.node.api_types import Container

ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
# As in kubelets: the kernel accepts no less.
_MIN_QUOTA_US: Final = 1_000
_CONTROLLERS: Final = ("memory", "cpu")
# A kernel without swap lacks them.
_OPTIONAL_FILES: Final = ("memory.swap.max", "memory.swappiness")
_PREFIX: Final = "dlctl-node-"


@attrs.frozen
class ResourceLimits:
    """The limits of a container; None is unlimited."""

    memory_bytes: int | None = None
    cpu_quota_us: int | None = None

    @classmethod
    def of(cls, container: Container) -> "ResourceLimits":
        limits = (container.resources.limits if container.resources else None) or {}
        memory, cpu = limits.get("memory"), limits.get("cpu")
        return cls(
            None if memory is None else int(parse_quantity(str(memory))),
            None if cpu is None else max(int(parse_quantity(str(cpu)) * _PERIOD_US), _MIN_QUOTA_US),
        )


@attrs.frozen
class ContainerGroup:
    """The control groups of one run of a container, one for each hierarchy."""

    directories: tuple[Path, ...]

    @property
    def processes_files(self) -> list[str]:
        """Return the files by which a process joins, by writing 0."""
        return [str(directory / "cgroup.procs") for directory in self.directories]

    def has_run_out_of_memory(self) -> bool:
        """Return whether the kernel has killed a process because of the limit."""
        for directory in self.directories:
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError, ValueError):
                    lines = (directory / name).read_text(encoding="ascii").splitlines()
                    if int(dict(line.split() for line in lines).get("oom_kill", 0)):
                        return True
        return False

    def remove(self) -> None:
        """Remove the groups; one whose last process is terminating is removed with the node's."""
        for directory in self.directories:
            with suppress(OSError):
                directory.rmdir()


@attrs.frozen
class ControlGroups:
    """The groups in which those of containers are created, by controller; empty without any."""

    parents: Mapping[str, Path]
    unified: bool = False

    def create(self, limits: ResourceLimits) -> ContainerGroup | None:
        """Create the groups for one run; None if there is nothing to limit, or no way to.

        :raises OSError: if the kernel rejects a limit.
        """
        settings: dict[Path, dict[str, str]] = {}
        name = uuid.uuid4().hex
        for controller, files in _settings(limits, unified=self.unified).items():
            if parent := self.parents.get(controller):
                settings.setdefault(parent / name, {}).update(files)
        group = ContainerGroup(tuple(settings))
        try:
            for directory in settings:
                directory.mkdir()
            for directory, files in settings.items():
                for file, value in files.items():
                    _write(directory / file, value)
        except OSError:
            group.remove()
            raise
        return group if settings else None

    def close(self) -> None:
        """Remove the groups; their processes have ended."""
        for parent in set(self.parents.values()):
            _remove(parent)


def _settings(limits: ResourceLimits, *, unified: bool) -> dict[str, dict[str, str]]:
    settings: dict[str, dict[str, str]] = {}
    if limits.memory_bytes is not None:
        value = str(limits.memory_bytes)
        settings["memory"] = (
            {"memory.max": value, "memory.swap.max": "0", "memory.oom.group": "1"}
            if unified
            else {"memory.limit_in_bytes": value, "memory.swappiness": "0"}
        )
    if limits.cpu_quota_us is not None:
        value = str(limits.cpu_quota_us)
        settings["cpu"] = (
            {"cpu.max": f"{value} {_PERIOD_US}"}
            if unified
            else {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": value}
        )
    return settings


def _write(file: Path, value: str) -> None:
    try:
        file.write_text(value, encoding="ascii")
    except OSError:
        if file.name not in _OPTIONAL_FILES:
            raise


@asynccontextmanager
async def control_groups() -> AsyncIterator[ControlGroups]:
    """Create groups for the duration of the block; all their processes end before it does."""
    groups = await asyncio.to_thread(open_groups)
    try:
        yield groups
    finally:
        await asyncio.to_thread(groups.close)


def open_groups(root: Path = ROOT, own: str | None = None) -> ControlGroups:
    """Create groups for the containers of a node; without the rights to, return none."""
    text = Path("/proc/self/cgroup").read_text(encoding="utf-8") if own is None else own
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    name = f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with suppress(OSError):
        if (root / "cgroup.controllers").exists():
            return _unified(root, paths.get("", ""), name)
        return _legacy(root, paths, name)
    return ControlGroups({})


def _unified(root: Path, own: str, name: str) -> ControlGroups:
    """Create a group beside our own one, or beside one of those around it."""
    for parent in (root / own).parents if own else (root,):
        if not parent.is_relative_to(root):
            break
        enabled = (parent / "cgroup.subtree_control").read_text(encoding="ascii").split()
        usable = [controller for controller in _CONTROLLERS if controller in enabled]
        if "memory" in usable and os.access(parent, os.W_OK):
            _remove_abandoned(parent)
            (parent / name).mkdir()
            groups = ControlGroups(dict.fromkeys(usable, parent / name), unified=True)
            wanted = " ".join(f"+{controller}" for controller in usable)
            try:
                (parent / name / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
            except OSError:
                groups.close()
                raise
            return groups
    return ControlGroups({})


def _legacy(root: Path, paths: Mapping[str, str], name: str) -> ControlGroups:
    """Create a group for each controller, inside our own one where it can be seen."""
    parents = {}
    for controller in _CONTROLLERS:
        around = root / controller / paths.get(controller, "")
        parent = around if around.is_dir() else root / controller
        with suppress(OSError):
            _remove_abandoned(parent)
            (parent / name).mkdir()
            parents[controller] = parent / name
    return ControlGroups(parents)


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of nodes that were killed; a group with processes cannot be removed."""
    for group in parent.glob(f"{_PREFIX}*-*"):
        pid = group.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            _remove(group)


def _remove(group: Path) -> None:
    # Another node may be removing it, too.
    with suppress(OSError):
        for inner in group.glob("*/"):
            with suppress(OSError):
                inner.rmdir()
        group.rmdir()

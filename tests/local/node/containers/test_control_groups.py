"""Where the control groups of containers are created, and what is written to them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dlctl.local.node.api_types import Container
from dlctl.local.node.containers.control_groups import ControlGroups, ResourceLimits, open_groups
from tests.local.node.builders import make_container


def limits(**values: Any) -> ResourceLimits:
    body = make_container(resources={"limits": values})
    return ResourceLimits.of(msgspec.convert(body, Container))


def unified(root: Path, *directories: str, controllers: str = "cpu memory") -> None:
    (root / "cgroup.controllers").write_text("cpu memory pids")
    for directory in ("", *directories):
        (root / directory).mkdir(parents=True, exist_ok=True)
        (root / directory / "cgroup.subtree_control").write_text(controllers)


def written(groups: ControlGroups, wanted: ResourceLimits) -> dict[str, str]:
    group = groups.create(wanted)
    assert group is not None
    files = [file for directory in group.directories for file in directory.iterdir()]
    return {file.name: file.read_text() for file in files}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"memory": "1Gi", "cpu": "1500m"}, ResourceLimits(1 << 30, 150_000)),
        ({"cpu": 2}, ResourceLimits(None, 200_000)),
        ({"cpu": "1m"}, ResourceLimits(None, 1_000)),
        ({"nvidia.com/gpu": "1"}, ResourceLimits()),
    ],
)
def test_limits_of_a_container(values: dict[str, Any], expected: ResourceLimits) -> None:
    assert limits(**values) == expected


def test_groups_are_beside_the_own_one_with_its_controllers(tmp_path: Path) -> None:
    unified(tmp_path, "user.slice/app.slice/shell.scope")
    unified(tmp_path, "user.slice/app.slice")
    groups = open_groups(tmp_path, "0::/user.slice/app.slice/shell.scope\n")
    [parent] = set(groups.parents.values())
    assert parent.parent == tmp_path / "user.slice/app.slice"
    assert (parent / "cgroup.subtree_control").read_text() == "+memory +cpu"
    assert written(groups, limits(memory="64Mi", cpu="500m")) == {
        "memory.max": str(64 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "50000 100000",
    }


def test_group_that_passes_on_no_memory_is_left_alone(tmp_path: Path) -> None:
    unified(tmp_path, "app.slice/shell.scope", "app.slice", controllers="pids")
    assert open_groups(tmp_path, "0::/app.slice/shell.scope\n").parents == {}
    assert not list(tmp_path.glob("**/dlctl-*"))


def test_version_1_has_a_group_for_each_controller(tmp_path: Path) -> None:
    for directory in ("memory/mine", "cpu"):
        (tmp_path / directory).mkdir(parents=True)
    groups = open_groups(tmp_path, "4:memory:/mine\n1:cpu:/\n0::/\n")
    assert groups.parents["memory"].parent == tmp_path / "memory/mine"
    assert groups.parents["cpu"].parent == tmp_path / "cpu"
    assert written(groups, limits(memory="1Mi", cpu="1")) == {
        "memory.limit_in_bytes": str(1 << 20),
        "memory.swappiness": "0",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "100000",
    }


def test_refused_group_leaves_none_behind(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    groups = ControlGroups({"memory": tmp_path / "memory", "cpu": tmp_path / "missing"})
    with pytest.raises(FileNotFoundError):
        groups.create(limits(memory="1Mi", cpu="1"))
    assert not list((tmp_path / "memory").iterdir())


def test_groups_are_removed_also_those_of_nodes_that_were_killed(tmp_path: Path) -> None:
    unified(tmp_path)
    abandoned = tmp_path / "dlctl-node-999999999-x"
    (abandoned / "container").mkdir(parents=True)
    groups = open_groups(tmp_path, "0::/\n")
    assert not abandoned.exists()
    [parent] = set(groups.parents.values())
    (parent / "cgroup.subtree_control").unlink()
    group = groups.create(limits())
    assert group is None
    groups.close()
    assert not parent.exists()


@pytest.mark.parametrize(("killed", "expected"), [("0", False), ("2", True)])
def test_kernel_counts_processes_that_it_killed(
    tmp_path: Path, killed: str, expected: bool
) -> None:
    unified(tmp_path)
    group = open_groups(tmp_path, "0::/\n").create(limits(memory="1Mi"))
    assert group is not None
    (group.directories[0] / "memory.events").write_text(f"max 7\noom_kill {killed}\n")
    assert group.has_run_out_of_memory() is expected

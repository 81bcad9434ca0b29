"""GPUs: how they are found, and which pod gets which."""

import os
from pathlib import Path
from typing import Any

import pytest

from dlctl.api.meta import UID
from dlctl.local.node.containers.devices import (
    DEVICE_TYPES,
    Device,
    DevicePool,
    NoDeviceError,
    find_devices,
    visible,
)
from tests.local.node.builders import make_container, make_pod

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"


def gpus(count: int | str, resource: str = NVIDIA) -> dict[str, Any]:
    return {"limits": {resource: count, "cpu": "2"}}


def install(folder: Path, program: str, script: str) -> None:
    (folder / program).write_text(f"#!/bin/sh\n{script}\n")
    (folder / program).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of PATH; the machine's own vendors' programs find nothing."""
    for kind in DEVICE_TYPES:
        install(tmp_path, kind.command[0], "exit 9")
        monkeypatch.delenv(kind.variable, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_devices_are_those_that_the_vendors_programs_list(programs: Path) -> None:
    install(programs, "nvidia-smi", "echo '0, GPU-aa'; echo '1, GPU-bb'")
    install(programs, "rocm-smi", """echo '{"card1": {}, "card3": {}, "system": {}}'""")
    assert find_devices() == {NVIDIA: ("0", "1"), AMD: ("0", "1")}


@pytest.mark.parametrize(
    "script", ["exit 9", "echo No devices were found", "echo"], ids=["fails", "none", "empty"]
)
def test_vendors_program_without_devices_is_no_device(programs: Path, script: str) -> None:
    install(programs, "nvidia-smi", script)
    assert find_devices() == {}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (None, ("0", "1")),
        ("1", ("1",)),
        ("GPU-a", ("0",)),
        ("", ()),
        ("-1", ()),
        (" 1, 0", ("0", "1")),
    ],
)
def test_only_devices_that_dlctl_may_use_are_handed_out(
    listed: str | None, expected: tuple[str, ...]
) -> None:
    devices = [Device("0", ("GPU-aa",)), Device("1", ("GPU-bb",))]
    assert visible(devices, listed) == expected


def test_each_container_gets_devices_of_its_own() -> None:
    pod = make_pod(
        containers=[
            make_container("a", resources=gpus(1)),
            make_container("none"),
            make_container("b", resources=gpus("2")),
        ],
        initContainers=[make_container("init", resources=gpus(2))],
    )
    env = DevicePool({NVIDIA: ("4", "5", "6")}).allocate(pod)
    shown = {name: values["CUDA_VISIBLE_DEVICES"] for name, values in env.items()}
    assert shown == {"a": "4", "none": "", "b": "5,6", "init": "4,5"}
    assert env["a"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_pod_keeps_its_devices_until_they_are_released() -> None:
    pool = DevicePool({NVIDIA: ("0", "1"), AMD: ("0",)})
    one = make_pod("one", containers=[make_container(resources=gpus(1))])
    two = make_pod("two", containers=[make_container(resources=gpus(2))])
    assert pool.allocate(one) == pool.allocate(one)
    assert pool.allocate(one)["main"]["HIP_VISIBLE_DEVICES"] == ""
    with pytest.raises(NoDeviceError, match=r"2 nvidia.com/gpu requested, 1 free"):
        pool.allocate(two)
    pool.release(UID("uid-of-one"))
    assert pool.allocate(two)["main"]["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_machine_without_devices_sets_no_variables() -> None:
    assert DevicePool({}).allocate(make_pod()) == {}

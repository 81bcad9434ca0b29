"""Replacements of container images."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from dlctl.local.node.containers.images import NoCommandError, find
from dlctl.options import Options
from e2e.cluster.addresses import free_port


def _environment(path: Path) -> Path:
    (path / "bin").mkdir(parents=True)
    entrypoint = path / "bin" / "entrypoint"
    entrypoint.write_text("#!/bin/sh\n")
    entrypoint.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("mapped", "asked"),
    [
        ("repo/mxnet", "repo/mxnet:cpu"),
        ("repo/mxnet:cpu", "repo/mxnet:cpu"),
        ("host:5000/mxnet", "host:5000/mxnet"),
        ("mxnet", "mxnet@sha256:0"),
    ],
)
def test_image_is_found_with_and_without_tag(mapped: str, asked: str, tmp_path: Path) -> None:
    assert find({mapped: tmp_path}, asked).target == tmp_path


def test_images_of_the_controller_itself_need_no_mapping(tmp_path: Path) -> None:
    nslookup = find({}, "alpine:3.10").bin
    assert nslookup is not None
    assert os.access(nslookup / "nslookup", os.X_OK)
    assert find({}, Options().mpi_kubectl_delivery_image).entrypoint is not None
    assert find({}, "kubeflow/kubectl-delivery:latest").entrypoint is not None
    assert find({"alpine": tmp_path}, "alpine:3.10").target == tmp_path


def test_nslookup_exit_code_shows_whether_a_name_resolves() -> None:
    folder = find({}, "alpine").bin
    assert folder is not None
    known = [
        subprocess.run([folder / "nslookup", name], stdout=subprocess.DEVNULL, check=False)
        for name in ("localhost", "nobody.invalid")
    ]
    assert [bool(done.returncode) for done in known] == [False, True]


def test_nc_exit_code_shows_whether_a_port_is_open() -> None:
    folder = find({}, "alpine").bin
    assert folder is not None
    # Not one that the kernel gives to the next server.
    port = str(free_port())
    with socket.create_server(("127.0.0.1", int(port))):
        asked = [str(folder / "nc"), "-z", "-w", "1", "localhost", port]
        listening = subprocess.run(asked, check=False)
    gone = subprocess.run(asked, check=False)
    nobody = subprocess.run([*asked[:-2], "nobody.invalid", port], check=False)
    assert [bool(done.returncode) for done in (listening, gone, nobody)] == [False, True, True]


def test_kubectl_delivery_copies_kubectl(tmp_path: Path) -> None:
    program, there = tmp_path / "kubectl", tmp_path / "there"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    there.mkdir()
    (command,) = find({}, "kubeflow/kubectl-delivery").command(None, None)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TARGET_DIR": str(there)}
    subprocess.run([command], env=env, check=True)
    assert os.access(there / "kubectl", os.X_OK)


def test_programs_of_the_environment_come_first(tmp_path: Path) -> None:
    image = find({"mxnet": _environment(tmp_path)}, "mxnet")
    assert image.path("/usr/bin") == f"{tmp_path}/bin:/usr/bin"


def test_entrypoint_of_the_environment_is_the_command(tmp_path: Path) -> None:
    image = find({"mxnet": _environment(tmp_path)}, "mxnet")
    assert image.command(None, ["-v"]) == [f"{tmp_path}/bin/entrypoint", "-v"]
    assert image.command(["python"], ["x.py"]) == ["python", "x.py"]


def test_executable_can_replace_an_image(tmp_path: Path) -> None:
    program = _environment(tmp_path) / "bin" / "entrypoint"
    image = find({"mxnet": program}, "mxnet")
    assert image.command(None, None) == [str(program)]
    assert image.path("/usr/bin") == f"{tmp_path}/bin:/usr/bin"


def test_unmapped_image_without_command_names_the_fix() -> None:
    with pytest.raises(NoCommandError, match="--image repo/mxnet:cpu=PREFIX"):
        find({}, "repo/mxnet:cpu").command(None, ["-v"])


def test_image_directory_can_be_inside_the_environment(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    image = find({"mxnet": tmp_path}, "mxnet")
    assert image.directory("/examples") == tmp_path / "examples"
    assert image.directory("/nowhere") is None

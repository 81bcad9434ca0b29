"""Volumes as directories."""

import stat
from pathlib import Path
from typing import Any

import pytest

from dlctl.local.node.containers.downward_api import PodPlacement
from dlctl.local.node.containers.references import ConfigSources, MissingReferenceError
from dlctl.local.node.containers.volumes import UnsupportedVolumeError, VolumeManager
from tests.local.node.builders import make_pod

PLACE = PodPlacement("localhost", "10.244.0.9", "10.244.0.1", allocatable={"cpu": "8"})
SOURCES = ConfigSources(
    config_maps={"m": {"a": b"1", "b": b"2"}}, secrets={"s": {"key": b"hidden"}}
)


def make_volume(tmp_path: Path, **volume: Any) -> Path:
    pod = make_pod(volumes=[{"name": "v", **volume}], labels={"job": "mnist"})
    maker = VolumeManager(pod, PLACE, SOURCES, tmp_path / "pod", tmp_path / "claims")
    return maker.create_all()["v"]


def content(path: Path) -> dict[str, str]:
    return {str(p.relative_to(path)): p.read_text() for p in path.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param({"emptyDir": {}}, {}, id="emptyDir"),
        pytest.param({"configMap": {"name": "m"}}, {"a": "1", "b": "2"}, id="configMap"),
        pytest.param(
            {"configMap": {"name": "m", "items": [{"key": "a", "path": "x/y"}]}},
            {"x/y": "1"},
            id="items",
        ),
        pytest.param({"secret": {"secretName": "s"}}, {"key": "hidden"}, id="secret"),
        pytest.param({"secret": {"secretName": "no", "optional": True}}, {}, id="optional"),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s"}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}
                                ]
                            }
                        },
                    ]
                }
            },
            {"key": "hidden", "l": 'job="mnist"'},
            id="projected",
        ),
        pytest.param(
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "cpus",
                            "resourceFieldRef": {
                                "containerName": "main",
                                "resource": "limits.cpu",
                            },
                        }
                    ]
                }
            },
            {"cpus": "8"},
            id="resource of a container",
        ),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, {}, id="claim"),
    ],
)
def test_volume_contains_its_sources(
    volume: dict[str, Any], expected: dict[str, str], tmp_path: Path
) -> None:
    assert content(make_volume(tmp_path, **volume)) == expected


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = make_volume(tmp_path, secret={"secretName": "s", "defaultMode": 0o444})
    assert stat.S_IMODE((path / "key").stat().st_mode) == 0o400


def test_volume_can_be_written_over_itself(tmp_path: Path) -> None:
    secret = {"secretName": "s", "defaultMode": 0o400}
    make_volume(tmp_path, secret=secret)
    assert content(make_volume(tmp_path, secret=secret)) == {"key": "hidden"}


@pytest.mark.parametrize(
    ("volume", "error", "message"),
    [
        ({"configMap": {"name": "no"}}, MissingReferenceError, 'configmap "no" not found'),
        ({"hostPath": {"path": "/no/such"}}, UnsupportedVolumeError, "/no/such"),
        ({"nfs": {"server": "x", "path": "/"}}, UnsupportedVolumeError, "unsupported type"),
        (
            {"configMap": {"name": "m", "items": [{"key": "a", "path": "../x"}]}},
            UnsupportedVolumeError,
            "is outside",
        ),
        (
            {"persistentVolumeClaim": {"claimName": "../x"}},
            UnsupportedVolumeError,
            "no name of a claim",
        ),
    ],
    ids=["missing", "no such path", "unknown kind", "path with dots", "claim with dots"],
)
def test_failed_volume_is_named(
    volume: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        make_volume(tmp_path, **volume)


def test_files_follow_their_sources(tmp_path: Path) -> None:
    pod = make_pod(volumes=[{"name": "v", "configMap": {"name": "m", "defaultMode": 0o555}}])
    maker = VolumeManager(pod, PLACE, SOURCES, tmp_path / "pod", tmp_path / "claims")
    path = maker.create_all()["v"]
    (path / "own").write_text("kept")
    open_before = (path / "a").open()

    maker.refresh(ConfigSources(config_maps={"m": {"a": b"new", "c": b"3"}}))

    assert content(path) == {"a": "new", "c": "3", "own": "kept"}
    assert stat.S_IMODE((path / "a").stat().st_mode) == 0o500
    with open_before:
        assert open_before.read() == "1"
    maker.refresh(ConfigSources())
    assert content(path) == {"a": "new", "c": "3", "own": "kept"}


def test_mode_of_a_projected_volume_is_that_of_its_files(tmp_path: Path) -> None:
    sources = [{"configMap": {"name": "m"}}]
    path = make_volume(tmp_path, projected={"defaultMode": 0o555, "sources": sources})
    assert stat.S_IMODE((path / "a").stat().st_mode) == 0o500

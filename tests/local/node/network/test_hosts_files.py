"""The hosts files of pods."""

import asyncio
import shutil
from pathlib import Path

import pytest

from dlctl.api.meta import UID
from dlctl.local.node.api_types import NodeService
from dlctl.local.node.network.hosts_files import HostsFiles, PodAddress, service_lines
from tests.local.node.builders import make_service


def make_neighbour(name: str, ip: str, **fields: object) -> PodAddress:
    values = {
        "namespace": "default",
        "hosts_path": Path("/nowhere"),
        "labels": {"job": "j"},
        "ready": True,
    }
    return PodAddress(hostname=name, ip=ip, **{**values, **fields})  # type: ignore[arg-type]


def ips(service: NodeService, *pods: PodAddress) -> list[str]:
    return [line.split("\t")[0] for line in service_lines([service], pods)]


def test_headless_service_resolves_to_all_ready_pods() -> None:
    pods = [
        make_neighbour("a", "10.244.0.2"),
        make_neighbour("b", "10.244.0.3", ready=False),
        make_neighbour("c", "10.244.0.4"),
        make_neighbour("d", "10.244.0.5", labels={}),
        make_neighbour("e", "10.244.0.6", namespace="other"),
    ]
    assert ips(make_service(selector={"job": "j"}), *pods) == ["10.244.0.2", "10.244.0.4"]


def test_service_that_publishes_not_ready_addresses_resolves_to_a_starting_pod() -> None:
    service = make_service(selector={"job": "j"}, publishNotReadyAddresses=True)
    assert ips(service, make_neighbour("a", "10.244.0.2", ready=False)) == ["10.244.0.2"]


def test_service_with_an_address_resolves_to_one_pod() -> None:
    service = make_service(selector={"job": "j"}, clusterIP="10.0.0.7")
    pods = [make_neighbour("a", "10.244.0.2"), make_neighbour("b", "10.244.0.3")]
    assert ips(service, *pods) == ["10.244.0.2"]


def test_terminated_pod_keeps_the_name_that_no_other_pod_takes() -> None:
    service = make_service(selector={"job": "j"})
    ended = make_neighbour("a", "10.244.0.2", ready=False, finished=True)
    assert ips(service, ended) == ["10.244.0.2"]
    assert ips(service, ended, make_neighbour("b", "10.244.0.3")) == ["10.244.0.3"]


def test_terminated_pod_keeps_its_own_name_in_a_shared_service() -> None:
    ended = make_neighbour("a", "10.244.0.2", subdomain="svc", finished=True)
    running = make_neighbour("b", "10.244.0.3", subdomain="svc")
    lines = service_lines([make_service(selector={"job": "j"})], [ended, running])
    assert ["svc.default" in line.split() for line in lines] == [False, True]
    assert ["a.svc.default" in lines[0].split(), "b.svc.default" in lines[1].split()] == [True] * 2


def test_service_without_selector_resolves_to_nothing() -> None:
    assert ips(make_service(selector={}), make_neighbour("a", "10.244.0.2")) == []


@pytest.mark.parametrize(
    ("home", "short"), [("default", True), ("other", False)], ids=["own namespace", "another"]
)
async def test_short_names_resolve_in_their_own_namespace(
    home: str, short: bool, tmp_path: Path
) -> None:
    table = HostsFiles([make_service("svc", selector={"job": "j"})])
    target = make_neighbour("a", "10.244.0.2", subdomain="svc", hosts_path=tmp_path / "a")
    reader = make_neighbour("r", "10.244.0.3", namespace=home, hosts_path=tmp_path / "r", labels={})
    await table.add(UID("1"), target)
    await table.add(UID("2"), reader)
    words = (tmp_path / "r").read_text().split()
    assert {"svc.default", "svc.default.svc.cluster.local", "a.svc.default.svc", "r"} <= set(words)
    assert ("svc" in words) is short
    assert ("a.svc" in words) is short


async def test_own_line_begins_with_the_full_name_of_a_pod_with_a_subdomain(tmp_path: Path) -> None:
    table = HostsFiles([])
    pod = make_neighbour(
        "a",
        "10.244.0.2",
        subdomain="svc",
        hosts_path=tmp_path / "a",
        aliases=["10.1.2.3\tdata data.example.org"],
    )
    await table.add(UID("1"), pod)
    lines = (tmp_path / "a").read_text().splitlines()
    assert "10.244.0.2\ta.svc.default.svc.cluster.local a" in lines
    assert "10.1.2.3\tdata data.example.org" in lines


async def test_names_resolve_in_the_search_domains_of_a_pod(tmp_path: Path) -> None:
    table = HostsFiles([make_service("svc", selector={"job": "j"})])
    domains = {"searches": ["svc.default.svc.cluster.local"]}
    for name, fields in (("a", {}), ("b", domains)):
        path = tmp_path / name
        pod = make_neighbour(name, "10.244.0.2", subdomain="svc", hosts_path=path, **fields)
        await table.add(UID(name), pod)
    assert {"b", "a", "a.svc"} <= set((tmp_path / "b").read_text().split())
    assert "b" not in (tmp_path / "a").read_text().split()


def text(path: Path) -> str:
    return path.read_text()


async def text_with(path: Path, word: str, *, present: bool) -> None:
    async with asyncio.timeout(5):
        while (word in text(path)) is not present:  # noqa: ASYNC110 - a file has no events
            await asyncio.sleep(0)


async def test_files_follow_services_and_pods_in_place(tmp_path: Path) -> None:
    services: list[NodeService] = []
    path = tmp_path / "a"
    table = HostsFiles(services)
    await table.add(UID("1"), make_neighbour("a", "10.244.0.2", hosts_path=path))
    inode = path.stat().st_ino
    async with asyncio.TaskGroup() as group:
        running = group.create_task(table.run())
        services.append(make_service("svc", selector={"job": "j"}))
        table.services_changed()
        await text_with(path, "svc.default", present=True)
        table.set_ready(UID("1"), ready=False)
        await text_with(path, "svc.default", present=False)
        assert path.stat().st_ino == inode
        running.cancel()


async def test_files_of_others_follow_services_after_the_directory_of_a_pod_is_removed(
    tmp_path: Path,
) -> None:
    table = HostsFiles(services := list[NodeService]())
    for name in ("a", "b"):
        path = tmp_path / name / "hosts"
        path.parent.mkdir()
        await table.add(UID(name), make_neighbour(name, "10.244.0.2", hosts_path=path))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(table.run())
        # As while a rewrite is on its way: the table knows the pod still.
        shutil.rmtree(tmp_path / "a")
        services.append(make_service("svc", selector={"job": "j"}))
        table.services_changed()
        await text_with(tmp_path / "b" / "hosts", "svc.default", present=True)
        running.cancel()


async def test_file_that_could_not_be_written_is_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a"
    path.mkdir()
    table = HostsFiles([])
    with pytest.raises(IsADirectoryError):
        await table.add(UID("1"), make_neighbour("a", "10.244.0.2", hosts_path=path))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(table.run())
        async with asyncio.timeout(5):
            while not caplog.records:  # noqa: ASYNC110 - a log has no events
                await asyncio.sleep(0)
        path.rmdir()
        path.touch()
        await text_with(path, "10.244.0.2", present=True)
        running.cancel()

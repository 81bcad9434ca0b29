"""Pods with a network and a view of the file system of their own."""

import os
from pathlib import Path

import pytest

from dlctl.api.meta import CONFIG_MAPS, SECRETS, SERVICES, ObjectKey
from tests.local.node.builders import make_container
from tests.local.node.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")

PORTS = [{"port": 7000}]
SERVE = """
import socket
with socket.create_server(("", 7000)) as server:
    while True:
        peer, _ = server.accept()
        peer.sendall(socket.gethostname().encode())
        peer.close()
"""
# As a program does that was started before the other side: it tries again.
ASK = """
import socket, sys, time
while True:
    try:
        with socket.create_connection((sys.argv[1], 7000), timeout=5) as peer:
            print(peer.recv(100).decode())
            break
    except OSError:
        time.sleep(0.02)
"""


def exist_on_the_machine(*paths: str) -> bool:
    return any(os.path.exists(path) for path in paths)


@pytest.fixture(autouse=True)
def _isolated(lab: Lab) -> None:
    if not lab.isolated:
        pytest.skip(f"no namespaces: {lab.cluster.network.reason}")


async def test_two_pods_bind_one_port_and_are_found_by_service_name(lab: Lab) -> None:
    for name in ("one", "two"):
        spec = {"clusterIP": "None", "selector": {"app": name}, "ports": PORTS}
        await lab.create(SERVICES, f"svc-{name}", spec=spec)
        await lab.start(f"serve-{name}", labels={"app": name}, command=["python3", "-c", SERVE])
        ends = ["", ".default", ".default.svc.cluster.local"]
        for index, end in enumerate(ends):
            asking = f"ask-{name}-{index}"
            await lab.start(asking, command=["python3", "-c", ASK, f"svc-{name}{end}"])
    for name in ("one", "two"):
        for index in range(3):
            await lab.finished(f"ask-{name}-{index}")
            assert await lab.log(f"ask-{name}-{index}") == f"serve-{name}\n"
        await lab.delete(f"serve-{name}", grace_period_s=0)


async def test_pod_resolves_a_service_that_publishes_it_before_it_is_ready(lab: Lab) -> None:
    selector = {"app": "early"}
    spec = {
        "clusterIP": "None",
        "selector": selector,
        "publishNotReadyAddresses": True,
        "ports": PORTS,
    }
    await lab.create(SERVICES, "early", spec=spec)
    script = "import socket; print(socket.gethostbyname('early'))"
    status = await lab.run("early", labels=selector, command=["python3", "-c", script])
    assert await lab.log("early") == status["podIP"] + "\n"


async def test_each_pod_has_its_address_and_a_loopback(lab: Lab) -> None:
    script = "hostname; grep -c : /proc/net/dev; echo $$$$"
    status = await lab.run("alone", command=["sh", "-c", script])
    name, devices, pid = (await lab.log("alone")).split()
    assert (name, devices) == ("alone", "2")
    assert int(pid) < 10
    assert status["podIP"] != status["hostIP"]


async def test_startup_files_of_whoever_runs_the_cluster_are_not_the_pods(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("echo mine\n")
    (tmp_path / "data").write_text("kept")
    script = f"cat {tmp_path}/.bashrc; cat {tmp_path}/data"
    await lab.run("login", command=["sh", "-c", script])
    assert await lab.log("login") == "kept"


async def test_volumes_are_mounted_where_the_manifest_says(lab: Lab) -> None:
    await lab.create(CONFIG_MAPS, "settings", data={"rate": "0.1"})
    await lab.create(SECRETS, "hidden", data={"key": "c2VjcmV0"})
    mounts = [
        {"name": "settings", "mountPath": "/dlctl-test-settings"},
        {"name": "hidden", "mountPath": "/var/dlctl-test/hidden", "readOnly": True},
        {"name": "room", "mountPath": "/tmp"},
        {"name": "settings", "mountPath": "/tmp/rate", "subPath": "rate"},
    ]
    script = (
        "cat /dlctl-test-settings/rate /var/dlctl-test/hidden/key /tmp/rate; ls /tmp;"
        "touch /var/dlctl-test/hidden/x"
    )
    await lab.run(
        "mounts",
        volumes=[
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "hidden", "secret": {"secretName": "hidden"}},
            {"name": "room", "emptyDir": {}},
        ],
        containers=[make_container(command=["sh", "-c", script], volumeMounts=mounts)],
    )
    log = await lab.log("mounts")
    assert log.startswith("0.1secret0.1rate\n"), log
    assert "Read-only file system" in log
    assert not exist_on_the_machine("/dlctl-test-settings", "/var/dlctl-test")


async def test_containers_of_a_pod_share_its_network_and_volumes(lab: Lab) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    serve = 'python3 -c "$0" & until test -e /room/asked; do sleep 0.02; done'
    ask = ["sh", "-c", 'python3 -c "$0" 127.0.0.1; touch /room/asked', ASK]
    await lab.run(
        "pair",
        volumes=[{"name": "room", "emptyDir": {}}],
        containers=[
            make_container("serve", command=["sh", "-c", serve, SERVE], volumeMounts=mounts),
            make_container("ask", command=ask, volumeMounts=mounts),
        ],
    )
    assert await lab.log("pair", container="ask") == "pair\n"


async def test_message_of_the_end_is_read_from_its_file(lab: Lab) -> None:
    command = ["sh", "-c", "echo -n because >/dlctl-test-why; exit 1"]
    status = await lab.run(
        "message",
        containers=[make_container(command=command, terminationMessagePath="/dlctl-test-why")],
    )
    assert status["containerStatuses"][0]["state"]["terminated"]["message"] == "because"


async def test_running_container_sees_a_config_map_change(lab: Lab) -> None:
    await lab.create(CONFIG_MAPS, "hosts-of-job", data={"hosts.sh": "#!/bin/sh\necho one"})
    items = [{"key": "hosts.sh", "path": "discover.sh", "mode": 0o555}]
    command = (
        "/dlctl-test/discover.sh; until /dlctl-test/discover.sh | grep two; do sleep 0.05; done"
    )
    await lab.start(
        "discovers",
        volumes=[{"name": "v", "configMap": {"name": "hosts-of-job", "items": items}}],
        containers=[
            make_container(
                command=["sh", "-c", command],
                volumeMounts=[{"name": "v", "mountPath": "/dlctl-test"}],
            )
        ],
    )
    await lab.until("discovers", lambda status: status["phase"] == "Running")
    assert await lab.first_line("discovers") == "one"
    change = {"data": {"hosts.sh": "#!/bin/sh\necho two"}}
    await lab.client.patch(CONFIG_MAPS, ObjectKey("default", "hosts-of-job"), change)
    await lab.finished("discovers")
    assert await lab.log("discovers") == "one\ntwo\n"

"""Pods with their own network and view of the file system."""

import os
from pathlib import Path
from typing import Any

import pytest

from dlctl.api.meta import CONFIG_MAPS, SECRETS, SERVICES, ObjectKey, Resource
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, container

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PORTS = [{"port": 7000}]
SERVE = """
import socket
with socket.create_server(("", 7000)) as server:
    while True:
        peer, _ = server.accept()
        peer.sendall(socket.gethostname().encode())
        peer.close()
"""
# Like a program that starts before its peer: it retries.
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
def _isolated(harness: NodeHarness) -> None:
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")


async def test_two_pods_bind_one_port_and_are_found_by_service_name(harness: NodeHarness) -> None:
    for name in ("one", "two"):
        spec = {"clusterIP": "None", "selector": {"app": name}, "ports": PORTS}
        await harness.create(SERVICES, f"svc-{name}", spec=spec)
        await harness.start(f"serve-{name}", labels={"app": name}, command=["python3", "-c", SERVE])
        ends = ["", ".default", ".default.svc.cluster.local"]
        for index, end in enumerate(ends):
            asking = f"ask-{name}-{index}"
            await harness.start(asking, command=["python3", "-c", ASK, f"svc-{name}{end}"])
    for name in ("one", "two"):
        for index in range(3):
            await harness.finished(f"ask-{name}-{index}")
            assert await harness.log(f"ask-{name}-{index}") == f"serve-{name}\n"
        await harness.delete(f"serve-{name}", grace_period_s=0)


async def test_pod_resolves_a_service_that_publishes_it_before_it_is_ready(
    harness: NodeHarness,
) -> None:
    selector = {"app": "early"}
    spec = {
        "clusterIP": "None",
        "selector": selector,
        "publishNotReadyAddresses": True,
        "ports": PORTS,
    }
    await harness.create(SERVICES, "early", spec=spec)
    script = "import socket; print(socket.gethostbyname('early'))"
    status = await harness.run("early", labels=selector, command=["python3", "-c", script])
    assert await harness.log("early") == status["podIP"] + "\n"


async def test_name_of_a_terminated_pod_resolves_until_it_is_deleted(harness: NodeHarness) -> None:
    spec = {"clusterIP": "None", "selector": {"app": "brief"}, "ports": PORTS}
    await harness.create(SERVICES, "brief", spec=spec)
    await harness.run("brief", labels={"app": "brief"})
    wait = 'until getent hosts brief; do sleep 0.02; done; echo "$(hostname) has passed"'
    await harness.run("late", initContainers=[make_container("wait", command=["sh", "-c", wait])])
    assert "late has passed" in await harness.log("late", container="wait")
    await harness.delete("brief")
    await harness.gone("brief")
    gone = "while getent hosts brief; do sleep 0.02; done; echo gone"
    await harness.run("later", command=["sh", "-c", gone])
    assert (await harness.log("later")).endswith("gone\n")


async def test_each_pod_has_its_address_and_a_loopback(harness: NodeHarness) -> None:
    script = "hostname; grep -c : /proc/net/dev; echo $$$$"
    status = await harness.run("alone", command=["sh", "-c", script])
    name, devices, pid = (await harness.log("alone")).split()
    assert (name, devices) == ("alone", "2")
    assert int(pid) < 10
    assert status["podIP"] != status["hostIP"]


async def test_pods_do_not_read_the_users_startup_files(
    harness: NodeHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("echo mine\n")
    (tmp_path / "data").write_text("kept")
    script = f"cat {tmp_path}/.bashrc; cat {tmp_path}/data"
    await harness.run("login", command=["sh", "-c", script])
    assert await harness.log("login") == "kept"


async def test_pods_run_although_the_home_cannot_be_looked_into(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As that of another user, but also for root.
    monkeypatch.setenv("HOME", f"/{'x' * 300}")
    await harness.run("homeless", command=["echo", "ran"])
    assert await harness.log("homeless") == "ran\n"


async def test_volumes_are_mounted_at_the_paths_of_the_manifest(harness: NodeHarness) -> None:
    await harness.create(CONFIG_MAPS, "settings", data={"rate": "0.1"})
    await harness.create(SECRETS, "hidden", data={"key": "c2VjcmV0"})
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
    await harness.run(
        "mounts",
        volumes=[
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "hidden", "secret": {"secretName": "hidden"}},
            {"name": "room", "emptyDir": {}},
        ],
        containers=[make_container(command=["sh", "-c", script], volumeMounts=mounts)],
    )
    log = await harness.log("mounts")
    assert log.startswith("0.1secret0.1rate\n"), log
    assert "Read-only file system" in log
    assert not exist_on_the_machine("/dlctl-test-settings", "/var/dlctl-test")


async def test_read_only_claim_is_not_written(harness: NodeHarness) -> None:
    claim = {"claimName": "shared", "readOnly": True}
    await harness.run(
        "reads",
        volumes=[{"name": "data", "persistentVolumeClaim": claim}],
        containers=[
            make_container(
                command=["sh", "-c", "touch /dlctl-test/x 2>/dev/null || echo refused"],
                volumeMounts=[{"name": "data", "mountPath": "/dlctl-test"}],
            )
        ],
    )
    assert await harness.log("reads") == "refused\n"


async def test_claim_is_bound_when_a_pod_uses_it(harness: NodeHarness) -> None:
    wanted = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": wanted}
    await harness.create(CLAIMS, "bound", spec=spec)
    key = ObjectKey("default", "bound")
    before = await harness.client.get(CLAIMS, key, dict[str, Any])
    assert before["status"] == {"phase": "Pending"}
    claim = {"claimName": "bound"}
    await harness.run("binds", volumes=[{"name": "data", "persistentVolumeClaim": claim}])
    after = await harness.client.get(CLAIMS, key, dict[str, Any])
    assert after["spec"]["volumeName"] == f"pvc-{after['metadata']['uid']}"
    assert after["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
    }


async def test_containers_of_a_pod_share_its_network_and_volumes(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    serve = 'python3 -c "$0" & until test -e /room/asked; do sleep 0.02; done'
    ask = ["sh", "-c", 'python3 -c "$0" 127.0.0.1; touch /room/asked', ASK]
    await harness.run(
        "pair",
        volumes=[{"name": "room", "emptyDir": {}}],
        containers=[
            make_container("serve", command=["sh", "-c", serve, SERVE], volumeMounts=mounts),
            make_container("ask", command=ask, volumeMounts=mounts),
        ],
    )
    assert await harness.log("pair", container="ask") == "pair\n"


@pytest.mark.parametrize(
    ("name", "path", "fields"),
    [
        pytest.param("default", "/dev/termination-log", {}, id="default"),
        pytest.param(
            "own", "/dlctl-test-why", {"terminationMessagePath": "/dlctl-test-why"}, id="own"
        ),
    ],
)
async def test_termination_message_is_read_from_its_file(
    harness: NodeHarness, name: str, path: str, fields: dict[str, str]
) -> None:
    before = exist_on_the_machine(path)
    command = ["sh", "-c", f"echo -n because >{path}; exit 1"]
    status = await harness.run(
        f"message-{name}", containers=[make_container(command=command, **fields)]
    )
    assert container(status)["state"]["terminated"]["message"] == "because"
    assert exist_on_the_machine(path) == before


async def test_pod_resolves_its_host_aliases_and_its_full_name(harness: NodeHarness) -> None:
    await harness.run(
        "aliases",
        command=["sh", "-c", "getent hosts data; hostname -f"],
        hostname="me",
        subdomain="svc",
        hostAliases=[{"ip": "10.1.2.3", "hostnames": ["data"]}],
    )
    address, name, full = (await harness.log("aliases")).split()
    assert (address, name, full) == ("10.1.2.3", "data", "me.svc.default.svc.cluster.local")


async def test_program_opens_a_terminal(harness: NodeHarness) -> None:
    script = "import os; print(os.path.exists(os.ttyname(os.openpty()[1])))"
    await harness.run("terminal", command=["python3", "-c", script])
    assert await harness.log("terminal") == "True\n"


async def test_mounted_path_is_expanded_for_each_container(harness: NodeHarness) -> None:
    mount = {"name": "v", "mountPath": "/dlctl-test-v"}
    writes = make_container(
        command=["sh", "-c", "echo hello >/dlctl-test-v/file"],
        env=[{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        volumeMounts=[{**mount, "subPathExpr": "logs/$(POD)"}],
    )
    reads = make_container(
        "reads", command=["cat", "/dlctl-test-v/logs/sub-path/file"], volumeMounts=[mount]
    )
    await harness.run(
        "sub-path",
        volumes=[{"name": "v", "emptyDir": {}}],
        initContainers=[{**writes, "name": "writes"}],
        containers=[reads],
    )
    assert await harness.log("sub-path") == "hello\n"


async def test_running_container_sees_a_config_map_change(harness: NodeHarness) -> None:
    await harness.create(CONFIG_MAPS, "hosts-of-job", data={"hosts.sh": "#!/bin/sh\necho one"})
    items = [{"key": "hosts.sh", "path": "discover.sh", "mode": 0o555}]
    command = (
        "/dlctl-test/discover.sh; until /dlctl-test/discover.sh | grep two; do sleep 0.05; done"
    )
    await harness.start(
        "discovers",
        volumes=[{"name": "v", "configMap": {"name": "hosts-of-job", "items": items}}],
        containers=[
            make_container(
                command=["sh", "-c", command],
                volumeMounts=[{"name": "v", "mountPath": "/dlctl-test"}],
            )
        ],
    )
    await harness.until("discovers", lambda status: status["phase"] == "Running")
    assert await harness.first_line("discovers") == "one"
    change = {"data": {"hosts.sh": "#!/bin/sh\necho two"}}
    await harness.client.patch(CONFIG_MAPS, ObjectKey("default", "hosts-of-job"), change)
    await harness.finished("discovers")
    assert await harness.log("discovers") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("name", "hostname"),
    [
        pytest.param(f"{'n' * 60}-worker-0", f"{'n' * 60}-wo", id="cut"),
        pytest.param(f"{'m' * 61}--0", "m" * 61, id="ends in a separator"),
    ],
)
async def test_long_name_of_a_pod_is_shortened_for_its_hostname(
    harness: NodeHarness, name: str, hostname: str
) -> None:
    await harness.run(name, command=["sh", "-c", "hostname; echo $HOSTNAME"])
    assert await harness.log(name) == f"{hostname}\n{hostname}\n"

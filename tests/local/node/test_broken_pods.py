"""Pods that the node cannot run or report; none of them may end it."""

import base64
import os
import shutil
from pathlib import Path

import pytest

from dlctl.api.meta import CONFIG_MAPS, SECRETS, ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.node.agent.sandboxes import StartError
from dlctl.local.node.containers.exec_sessions import ExecCommand
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, container, exit_code

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def others_run(harness: NodeHarness, name: str) -> bool:
    status = await harness.run(f"beside-{name}")
    return str(status["phase"]) == "Succeeded"


def ends_after(file: Path) -> list[str]:
    """Return the command of a program that fails once a file is there."""
    return ["sh", "-c", f"echo up; until [ -e {file} ]; do sleep 0.05; done; exit 3"]


async def up(harness: NodeHarness, name: str) -> None:
    await harness.until(name, lambda status: status.get("phase") == "Running")
    assert await harness.first_line(name) == "up"


@pytest.mark.parametrize("below", ["directory", "x" * 300], ids=["file", "too long"])
async def test_host_path_that_cannot_be_created_is_a_failed_mount(
    harness: NodeHarness, below: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    name = f"host-path-{len(below)}"
    host_path = {"path": str(tmp_path / "file" / below), "type": "DirectoryOrCreate"}
    await harness.start(name, volumes=[{"name": "v", "hostPath": host_path}])
    await harness.warning("[Errno")
    assert await others_run(harness, name)
    await harness.delete(name)


async def test_sub_path_below_a_file_is_a_configuration_error(
    harness: NodeHarness, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    mount = {"name": "v", "mountPath": "/mnt", "subPath": "file/below"}
    await harness.start(
        "sub-path",
        containers=[make_container(volumeMounts=[mount])],
        volumes=[{"name": "v", "hostPath": {"path": str(tmp_path)}}],
    )
    await harness.warning("Not a directory")
    assert await others_run(harness, "sub-path")
    await harness.delete("sub-path")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        pytest.param("A", "/data", '$(A) is \\"/data\\"', id="absolute"),
        pytest.param("B", "a/../..", '$(B) is \\"a/../..\\"', id="outside"),
        pytest.param("C", None, "variable C is not set", id="unknown variable"),
    ],
)
async def test_sub_path_that_leaves_its_volume_is_a_configuration_error(
    harness: NodeHarness, variable: str, value: str | None, message: str, tmp_path: Path
) -> None:
    name = f"sub-path-{variable.lower()}"
    main = make_container(
        env=[] if value is None else [{"name": variable, "value": value}],
        volumeMounts=[{"name": "v", "mountPath": "/mnt", "subPathExpr": f"$({variable})"}],
    )
    volumes = [{"name": "v", "hostPath": {"path": str(tmp_path)}}]
    await harness.start(name, containers=[main], volumes=volumes)
    await harness.warning(message)
    assert await others_run(harness, name)
    assert not os.listdir(tmp_path)
    await harness.delete(name)


@pytest.mark.parametrize("bulk", [True, False], ids=["envFrom", "valueFrom"])
async def test_variable_from_a_secret_that_is_no_text_is_a_configuration_error(
    harness: NodeHarness, bulk: bool
) -> None:
    name = f"binary-{bulk}".lower()
    await harness.create(SECRETS, name, data={"KEY": base64.b64encode(b"\xff\xfe").decode()})
    given = (
        {"envFrom": [{"secretRef": {"name": name}}]}
        if bulk
        else {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "KEY"}}}]}
    )
    await harness.start(name, containers=[make_container(**given)])
    await harness.warning(f'key \\"KEY\\" in secret \\"{name}\\" is not UTF-8')
    assert await others_run(harness, name)
    await harness.delete(name)


async def test_pod_whose_directory_is_removed_while_it_runs_ends(
    harness: NodeHarness, tmp_path: Path
) -> None:
    main = make_container(command=ends_after(tmp_path / "go"), terminationMessagePath="/tmp/said")
    await harness.start("no-directory", containers=[main])
    await up(harness, "no-directory")
    shutil.rmtree(harness.cluster.run_dir / "pods" / harness.uid("no-directory"))
    (tmp_path / "go").touch()
    assert exit_code(await harness.finished("no-directory")) == 3
    assert await others_run(harness, "no-directory")


async def test_pod_whose_directory_is_removed_before_a_restart_waits(
    harness: NodeHarness, tmp_path: Path
) -> None:
    main = make_container(
        command=ends_after(tmp_path / "go"), terminationMessagePolicy="FallbackToLogsOnError"
    )
    await harness.start("emptied", containers=[main], restartPolicy="Always")
    await up(harness, "emptied")
    shutil.rmtree(harness.cluster.run_dir / "pods" / harness.uid("emptied"))
    (tmp_path / "go").touch()
    await harness.warning("No such file or directory")
    assert await others_run(harness, "emptied")
    await harness.delete("emptied")


async def test_volume_that_its_container_has_replaced_is_not_refreshed(
    harness: NodeHarness,
) -> None:
    await harness.create(CONFIG_MAPS, "moved", data={"a": "old"})
    script = "rm -r /tmp/v/d && ln -s / /tmp/v/d && echo up && sleep 60"
    main = make_container(
        command=["sh", "-c", script], volumeMounts=[{"name": "v", "mountPath": "/tmp/v"}]
    )
    volume = {"name": "moved", "items": [{"key": "a", "path": "d/a"}]}
    await harness.start("replaces", containers=[main], volumes=[{"name": "v", "configMap": volume}])
    await up(harness, "replaces")
    key = ObjectKey("default", "moved")
    await harness.client.patch(CONFIG_MAPS, key, {"data": {"a": "new"}})
    await harness.warning("is outside the volume")
    assert await others_run(harness, "replaces")
    await harness.delete("replaces", grace_period_s=0)


async def test_pod_whose_token_is_refused_is_set_up_later(harness: NodeHarness) -> None:
    gone = status.bad_request("gone")
    fault = Fault(verb="create", subresource="token", status=gone)
    harness.cluster.server.faults.add(fault)
    assert (await harness.run("tokenless"))["phase"] == "Succeeded"


async def test_pod_whose_status_is_rejected_leaves_the_node_running(harness: NodeHarness) -> None:
    fault = Fault(verb="patch", subresource="status", status=status.bad_request("no"))
    harness.cluster.server.faults.add(fault)
    assert (await harness.run("rejected"))["phase"] == "Succeeded"


async def test_probe_of_a_host_that_is_no_name_fails(harness: NodeHarness) -> None:
    probe = {"tcpSocket": {"port": 1, "host": "a..b"}, "periodSeconds": 1}
    main = make_container(command=["sleep", "60"], readinessProbe=probe)
    await harness.start("no-name", containers=[main])
    await harness.warning("Readiness probe failed")
    assert not container(await harness.until("no-name", lambda s: s["containerStatuses"]))["ready"]
    assert await others_run(harness, "no-name")
    await harness.delete("no-name", grace_period_s=0)


async def test_pod_that_fails_unexpectedly_ends_with_its_containers(harness: NodeHarness) -> None:
    mount = {"name": "v", "mountPath": "/mnt", "subPath": "no\0name"}
    beside = make_container("beside", command=["sleep", "60"])
    await harness.start(
        "unexpected",
        containers=[beside, make_container(volumeMounts=[mount])],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    ended = await harness.finished("unexpected")
    assert (ended["phase"], ended["message"]) == ("Failed", "embedded null byte")
    assert await others_run(harness, "unexpected")


async def test_command_whose_pipes_cannot_be_made_is_not_started(harness: NodeHarness) -> None:
    await harness.start("no-pipes", command=["sh", "-c", "echo up; sleep 60"])
    await up(harness, "no-pipes")
    (harness.cluster.run_dir / "pods" / harness.uid("no-pipes") / "sessions").touch()
    key = ObjectKey("default", "no-pipes")
    with pytest.raises(StartError, match="pipes of the command"):
        async with harness.cluster.node.session(key, "", ExecCommand(["true"])):
            pass
    await harness.delete("no-pipes", grace_period_s=0)

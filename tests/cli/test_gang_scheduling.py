"""A gang scheduler without PodGroups in the cluster is detected at start."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS
from dlctl.cli.gang_scheduling import check_pod_groups
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.server import ApiServer, serve
from tests.kube.scripted_server import Server, replies, serving
from tests.support.pod_groups import serve_pod_groups


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serve(tls=False) as served:
        yield served


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(server.config()) as connected:
        yield connected


async def test_nothing_is_needed_without_a_gang_scheduler(client: Client) -> None:
    await check_pod_groups(client, "")


@pytest.mark.parametrize(
    ("scheduler", "missing"),
    [
        ("volcano", "podgroups.scheduling.volcano.sh at version v1beta1"),
        ("own", "podgroups.scheduling.x-k8s.io at version v1alpha1"),
    ],
)
async def test_missing_pod_groups_are_reported(
    client: Client, scheduler: str, missing: str
) -> None:
    other = COSCHEDULING_POD_GROUPS if scheduler == "volcano" else VOLCANO_POD_GROUPS
    await serve_pod_groups(client, other)
    with pytest.raises(ConfigError) as refused:
        await check_pod_groups(client, scheduler)
    assert f"--gang-scheduler-name is {scheduler!r}, but the cluster does not serve {missing}" in (
        str(refused.value)
    )
    await serve_pod_groups(
        client, VOLCANO_POD_GROUPS if scheduler == "volcano" else COSCHEDULING_POD_GROUPS
    )
    await check_pod_groups(client, scheduler)


async def test_forbidden_check_only_warns(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    unauthorized = ClusterConfig.with_token(server.url, "wrong")
    async with Client(unauthorized) as client:
        await check_pod_groups(client, "volcano")
    assert "cannot ask for PodGroups" in caplog.text


async def test_answer_that_is_no_json_only_warns(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Server()) as proxy:
        proxy.handlers.append(replies(b"<html>sign in</html>"))
        async with Client(ClusterConfig.with_token(proxy.url, "any")) as client:
            await check_pod_groups(client, "volcano")
    assert "cannot ask for PodGroups" in caplog.text


async def test_controller_exits_with_the_code_of_an_invalid_setting(
    server: ApiServer, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
    command = ("-m", "dlctl", "controller", "--kubeconfig", str(kubeconfig), "--bind-address=")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DLCTL_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--gang-scheduler-name=volcano",
        stderr=asyncio.subprocess.PIPE, env=environment,
    )  # fmt: skip
    _, said = await process.communicate()
    assert process.returncode == 2, said.decode()
    assert "does not serve podgroups.scheduling.volcano.sh" in said.decode()
    assert "Traceback" not in said.decode()

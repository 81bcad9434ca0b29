"""Sources of the configuration, and renewal of credentials."""

import asyncio
import base64
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
import yaml

from dlctl.api.meta import PODS, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig, LoadedCredentials, in_cluster, load
from tests.kube.scripted_server import Server, fails, replies

AUTHORITY = trustme.CA()
CA_PEM = AUTHORITY.cert_pem.bytes()


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own configuration from the tests."""
    proxies = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", *proxies):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def write_kubeconfig(
    path: Path, user: Mapping[str, Any], *, server: str = "https://k8s.example:6443", **cluster: Any
) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "two", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "one",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def write_plugin(path: Path) -> dict[str, Any]:
    """Return a user with an exec plugin that returns token-1, token-2 and so on."""
    script = f"""
import json, pathlib
count = pathlib.Path({str(path)!r})
runs = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(runs))
status = {{"token": f"token-{{runs}}", "expirationTimestamp": "2999-01-01T00:00:00Z"}}
version = "client.authentication.k8s.io/v1"
print(json.dumps({{"apiVersion": version, "kind": "ExecCredential", "status": status}}))
"""
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"command": sys.executable, "args": ["-c", script], "apiVersion": version}}


async def authorization(cluster: ClusterConfig) -> str:
    return (await cluster.credentials.access()).headers["Authorization"]


async def test_kubeconfig_sets_server_namespace_token_and_authority(tmp_path: Path) -> None:
    data = base64.b64encode(CA_PEM).decode()
    path = write_kubeconfig(
        tmp_path / "config", {"token": "t"}, **{"certificate-authority-data": data}
    )
    cluster = await load(path)
    assert (cluster.server, cluster.namespace) == ("https://k8s.example:6443", "team")
    access = await cluster.credentials.access()
    assert access.headers == {"Authorization": "Bearer t"}
    assert access.tls
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    assert len(access.tls.get_ca_certs()) == 1


async def test_context_can_be_chosen(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {"username": "a", "password": "b"})
    cluster = await load(path, "two")
    assert cluster.namespace == "default"
    assert await authorization(cluster) == "Basic YTpi"


async def test_server_without_tls_has_no_ssl_context(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {}, server="http://127.0.0.1:8001/")
    cluster = await load(path)
    assert cluster.server == "http://127.0.0.1:8001"
    access = await cluster.credentials.access()
    assert (access.headers, access.tls) == ({}, None)


async def test_tls_verification_can_be_disabled_or_use_another_server_name(tmp_path: Path) -> None:
    options: dict[str, Any] = {"insecure-skip-tls-verify": True, "tls-server-name": "kubernetes"}
    path = write_kubeconfig(tmp_path / "config", {"token": "t"}, **options)
    cluster = await load(path)
    access = await cluster.credentials.access()
    assert access.tls
    assert access.tls.verify_mode is ssl.CERT_NONE
    assert cluster.tls_server_name == "kubernetes"


@pytest.mark.parametrize(
    "server", ["https://h:99999", "https://h:x", "https://[::1", "https://", "h:6443"]
)
async def test_server_that_is_no_url_is_reported(server: str, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"}, server=server)
    with pytest.raises(ConfigError, match=r"is no URL such as https://HOST:PORT$"):
        await load(path)


async def test_proxy_comes_from_the_kubeconfig_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"})
    assert (await load(path)).proxy is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert (await load(path)).proxy == "http://proxy.example:3128"
    monkeypatch.setenv("NO_PROXY", "k8s.example")
    assert (await load(path)).proxy is None
    own = write_kubeconfig(tmp_path / "own", {}, **{"proxy-url": "http://own.example:1"})
    assert (await load(own)).proxy == "http://own.example:1"
    socks = write_kubeconfig(tmp_path / "socks", {}, **{"proxy-url": "socks5://own.example:1"})
    with pytest.raises(ConfigError, match=r"^proxy-url: not the URL of an HTTP proxy"):
        await load(socks)


async def test_kubeconfig_is_found_in_the_environment_then_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config", {"token": "home"})
    assert await authorization(await load()) == "Bearer home"
    path = write_kubeconfig(tmp_path / "named", {"token": "named"})
    monkeypatch.setenv("KUBECONFIG", path)
    assert await authorization(await load()) == "Bearer named"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("{", id="no yaml"),
        pytest.param("clusters: []\ncontexts: []\nusers: []\n", id="no context"),
    ],
)
async def test_unusable_kubeconfig_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match="config: "):
        await load(str(path))


@pytest.mark.parametrize("text", ["a sentence\n", "[]\n", "contexts: 3\n"])
async def test_file_without_the_form_of_a_kubeconfig_is_one_error(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match="it is not a kubeconfig"):
        await load(str(path))


async def test_kubeconfig_that_is_not_yaml_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("a:\n\tb: c\n")
    with pytest.raises(ConfigError) as raised:
        await load(str(path))
    assert f'in "{path}", line 2, column 1' in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_exec_plugin_runs_once_and_again_when_its_token_is_rejected(
    tmp_path: Path, server: Server
) -> None:
    runs = tmp_path / "runs"
    path = write_kubeconfig(tmp_path / "config", write_plugin(runs), server=server.url)
    cluster = await load(path)
    pod = replies({"metadata": {"name": "a"}})
    server.handlers += [pod, pod, fails(401, "Unauthorized"), pod]
    async with Client(cluster) as client:
        for _ in range(3):
            await client.get(PODS, ObjectKey("ns", "a"), Pod)
    tokens = [seen.headers["authorization"] for seen in server.seen]
    assert tokens == ["Bearer token-1"] * 3 + ["Bearer token-2"]
    assert runs.read_text() == "2"


async def test_exec_plugin_that_fails_at_start_is_a_configuration_error(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    user = {"exec": {"command": "false", "apiVersion": version}}
    with pytest.raises(ConfigError, match="credentials: "):
        await load(write_kubeconfig(tmp_path / "config", user))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the service account folder of a pod."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(CA_PEM)
    (tmp_path / "namespace").write_text("team")
    return tmp_path


def make_due(cluster: ClusterConfig) -> None:
    assert isinstance(cluster.credentials, LoadedCredentials)
    cluster.credentials._reload_at = 0.0


async def test_in_cluster_config_is_found(account: Path) -> None:
    cluster = await in_cluster(account)
    assert (cluster.server, cluster.namespace) == ("https://10.0.0.1:443", "team")
    assert await authorization(cluster) == "Bearer first"


async def test_in_cluster_config_reads_the_proxy_of_the_environment(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert (await in_cluster(account)).proxy == "http://proxy.example:3128"
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert (await in_cluster(account)).proxy is None


async def test_token_file_is_reread_every_minute(account: Path) -> None:
    cluster = await in_cluster(account)
    (account / "token").write_text("second")
    assert await authorization(cluster) == "Bearer first"
    make_due(cluster)
    assert await authorization(cluster) == "Bearer second"


async def test_ssl_context_is_rebuilt_only_when_the_authority_changes(
    account: Path,
) -> None:
    cluster = await in_cluster(account)
    first = (await cluster.credentials.access()).tls
    make_due(cluster)
    assert (await cluster.credentials.access()).tls is first
    (account / "ca.crt").write_bytes(CA_PEM + trustme.CA().cert_pem.bytes())
    make_due(cluster)
    second = (await cluster.credentials.access()).tls
    assert second
    assert second is not first
    assert len(second.get_ca_certs()) == 2


async def test_credentials_that_cannot_be_refreshed_stay_in_use(
    account: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = await in_cluster(account)
    (account / "token").unlink()
    make_due(cluster)
    assert await authorization(cluster) == "Bearer first"
    assert "could not be refreshed" in caplog.text
    assert "first" not in caplog.text


async def test_rejected_credentials_are_renewed_once_for_all_requests(account: Path) -> None:
    cluster = await in_cluster(account)
    rejected = await cluster.credentials.access()
    (account / "token").write_text("second")
    renewed = await cluster.credentials.access(rejected)
    assert renewed.headers == {"Authorization": "Bearer second"}
    assert await cluster.credentials.access(rejected) is renewed


async def test_credentials_stay_in_use_while_a_plugin_hangs(account: Path) -> None:
    cluster = await in_cluster(account)
    credentials = cluster.credentials
    assert isinstance(credentials, LoadedCredentials)
    hanging = asyncio.Event()

    async def reload(renew: bool) -> None:
        hanging.set()
        await asyncio.get_running_loop().create_future()

    credentials.reload = reload
    make_due(cluster)
    first = asyncio.create_task(credentials.access())
    await hanging.wait()
    assert await authorization(cluster) == "Bearer first"
    first.cancel()
    await asyncio.wait([first])
    # The next attempt is a minute later.
    assert await authorization(cluster) == "Bearer first"


async def test_service_account_without_a_token_is_a_configuration_error(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(ConfigError, match="credentials: "):
        await in_cluster(account)


async def test_kubeconfig_error_does_not_quote_the_users_entry(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, {})
    content = yaml.safe_load(path.read_text())
    content["users"] = [{"name": "u", "token": "very-secret-token"}]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match="Expected key user") as raised:
        await load(str(path))
    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__


# Reads the file that it is given, and prints how much of the libraries that has left.
_LOADS: Final = """
import asyncio, sys
from dlctl.kube.config import load
cluster = asyncio.run(load(sys.argv[1]))
libraries = ("kubernetes_asyncio", "urllib3")
print(cluster.server, *(name for name in sys.modules if name.startswith(libraries)))
import kubernetes_asyncio.client, urllib3
print(kubernetes_asyncio.client.V1Pod.__name__, kubernetes_asyncio.client.CoreV1Api.__name__)
print(urllib3.PoolManager.__name__)
"""


def test_reading_a_kubeconfig_imports_no_second_http_client(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, {"token": "t"})
    command = [sys.executable, "-c", _LOADS, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded, *classes = done.stdout.splitlines()
    server, *modules = loaded.split()
    assert server.startswith("https://")
    assert modules == []
    # A framework that uses the libraries has all of them.
    assert classes == ["V1Pod CoreV1Api", "PoolManager"]

"""Two servers, one contract: each test runs against the embedded API server and a real one.

The real one is the cluster of CONTRACT_KUBECONFIG; without it only the embedded one is tested.
"""

import asyncio
import base64
import os
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from dlctl.local.apiserver.server import serve
from tests.contract.api import Api
from tests.contract.definitions import gadgets
from tests.local.apiserver.raw_client import Answer

_LOOP_TURNS = 5
_KUBECONFIG = os.environ.get("CONTRACT_KUBECONFIG", "")


@pytest.fixture(params=["embedded", "real"] if _KUBECONFIG else ["embedded"])
def server_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
async def api(server_kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    async with _embedded() if server_kind == "embedded" else _real() as running:
        for minor, why in (mark.args for mark in request.node.iter_markers("since")):
            if running.minor < minor:
                # It is run all the same, to notice when a difference disappears.
                request.applymarker(pytest.mark.xfail(raises=AssertionError, reason=why))
        yield running
    # Aborted connections are closed by the loop, which ends with the test.
    for _ in range(_LOOP_TURNS):
        await asyncio.sleep(0)


@pytest.fixture
async def gadget_api(api: Api) -> Api:
    """A server with the CRD of gadgets."""
    await api.define(gadgets())
    return api


@asynccontextmanager
async def _embedded() -> AsyncIterator[Api]:
    async with serve(tls=False, bookmark_interval_s=0.05) as server:

        async def compact(version: int) -> None:
            server.storage.compact(version)

        headers = {"Authorization": f"Bearer {server.token}"}
        async with (
            aiohttp.ClientSession(server.url, headers=headers) as session,
            _namespace(Api(session, "embedded", await _minor(session), _name(), compact)) as api,
        ):
            yield api


@asynccontextmanager
async def _real() -> AsyncIterator[Api]:
    url, headers, context = _read_kubeconfig(Path(_KUBECONFIG))
    connector = aiohttp.TCPConnector(ssl=context)
    async with (
        aiohttp.ClientSession(url, headers=headers, connector=connector) as session,
        _namespace(
            Api(session, "real", await _minor(session), _name(), _etcd_compaction(session))
        ) as api,
    ):
        yield api


async def _minor(session: aiohttp.ClientSession) -> int:
    async with session.get("/version") as response:
        # Vendors append a suffix.
        return int((await response.json())["minor"].rstrip("+"))


def _name() -> str:
    return f"contract-{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def _namespace(api: Api) -> AsyncIterator[Api]:
    path = f"/api/v1/namespaces/{api.namespace}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
    # Pods are rejected until their service account exists.
    await api.wait_until(f"{path}/serviceaccounts/default", _exists)
    yield api
    # Our own cluster is discarded; emptying its namespaces would only slow it down.
    if api.is_real and api.compact is None:
        await api.delete(path)


def _exists(answer: Answer) -> bool:
    return answer.code == 200


def _read_kubeconfig(kubeconfig: Path) -> tuple[str, dict[str, str], ssl.SSLContext]:
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    return cluster["server"], {"Authorization": f"Bearer {user['token']}"}, context


def _etcd_compaction(session: aiohttp.ClientSession) -> Callable[[int], Awaitable[None]] | None:
    """Return a function that compacts the etcd of our own cluster, whose address is known."""
    file = Path(_KUBECONFIG).parent / "etcd.url"
    if not file.exists():
        return None
    etcd = file.read_text()

    async def compact(version: int) -> None:
        body = {"revision": version}
        async with session.post(f"{etcd}/v3/kv/compaction", json=body) as response:
            text = await response.text()
            # Another test may have done more.
            assert response.status == 200 or "has been compacted" in text, text

    return compact

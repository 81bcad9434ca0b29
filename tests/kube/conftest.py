"""A client under test, against a server with scripted responses."""

from collections.abc import AsyncIterator

import pytest

from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.metrics import Metrics
from tests.kube.scripted_server import TOKEN, Server, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(Server()) as server:
        yield server


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def client(server: Server, metrics: Metrics) -> AsyncIterator[Client]:
    config = ClusterConfig.with_token(server.url, TOKEN)
    async with Client(config, user_agent="dlctl/test", metrics=metrics) as client:
        yield client

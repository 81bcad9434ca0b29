"""Leases on an embedded server, lease locks, and clocks that tests set."""

from collections.abc import AsyncIterator

import pytest

from dlctl.kube.client import Client
from dlctl.leaderelection.lease_lock import LeaseLock
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.local.apiserver.server import serve
from dlctl.metrics import Metrics
from tests.leaderelection.lease_server import KEY, LeaseServer
from tests.support.timing import ManualClock


@pytest.fixture
async def lease_server() -> AsyncIterator[LeaseServer]:
    async with (
        serve(tls=False) as server,
        Client(server.config(), user_agent="user") as user,
    ):
        yield LeaseServer(server, user)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def lease_lock(
    lease_server: LeaseServer, clock: ManualClock, metrics: Metrics
) -> AsyncIterator[LeaseLock]:
    async with Client(lease_server.server.config(), user_agent="ours") as client:
        yield LeaseLock(client, KEY, "us", LeaseTiming(), clock, metrics)

"""The built-in kinds as the API server serves them."""

import pytest

from dlctl.local.apiserver.builtins import strategies
from dlctl.local.apiserver.resources import ResourceRegistry, Strategy
from tests.local.apiserver.builtins.admitting import strategy


@pytest.fixture(scope="module")
def registry() -> ResourceRegistry:
    served = ResourceRegistry()
    strategies.register(served)
    return served


@pytest.fixture
def pods(registry: ResourceRegistry) -> Strategy:
    return strategy(registry, "pods")


@pytest.fixture
def services(registry: ResourceRegistry) -> Strategy:
    return strategy(registry, "services")

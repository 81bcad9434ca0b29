from collections.abc import Iterator

import pytest

import dlctl


@pytest.fixture(scope="module")
def cluster() -> Iterator[dlctl.BlockingCluster]:
    with dlctl.BlockingCluster(network="host") as running:
        yield running

"""A pytest plugin for users who test their manifests: the fixture ``dlctl_cluster``.

Imports nothing of dlctl until a test uses the fixture. The cluster is started once for all tests of
the session, and each test has a namespace of its own in it.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from dlctl.blocking_cluster import BlockingCluster
    from dlctl.embedded_cluster import JobResult

_TIMEOUT_S = 60.0


class ClusterFixture:
    """An embedded cluster, as one test sees it."""

    def __init__(self, cluster: "BlockingCluster", namespace: str) -> None:
        self._cluster = cluster
        #: The namespace of objects that set none; it is deleted after the test.
        self.namespace = namespace

    @property
    def kubeconfig(self) -> "Path":
        """Return the file with which kubectl and Kubernetes clients find the cluster."""
        return self._cluster.kubeconfig

    def run(self, manifest: Any, *, timeout_s: float = _TIMEOUT_S, **options: Any) -> "JobResult":
        """Run a job to its end, as :meth:`dlctl.BlockingCluster.run` does."""
        return self._cluster.run(
            manifest, timeout_s=timeout_s, **{"namespace": self.namespace, **options}
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "dlctl_images", "images of the embedded cluster, one NAME=PREFIX a line", type="linelist"
    )
    parser.addini(
        "dlctl_network", "network of the embedded cluster: auto, isolated or host", default="auto"
    )


@pytest.fixture(scope="session")
def dlctl_session_cluster(request: pytest.FixtureRequest) -> "Iterator[BlockingCluster]":
    """Run one cluster for all tests."""
    from dlctl import BlockingCluster

    images = (line.partition("=") for line in request.config.getini("dlctl_images"))
    with BlockingCluster(
        images={name.strip(): path.strip() for name, _, path in images},
        network=request.config.getini("dlctl_network"),
    ) as cluster:
        yield cluster


_numbers = itertools.count(1)


@pytest.fixture
def dlctl_cluster(dlctl_session_cluster: "BlockingCluster") -> Iterator[ClusterFixture]:
    """Run jobs on this machine: ``dlctl_cluster.run(manifest)`` returns how the job ended."""
    namespace = f"test-{next(_numbers)}"
    yield ClusterFixture(dlctl_session_cluster, namespace)
    dlctl_session_cluster.delete_namespace(namespace)

"""A cluster with dlctl, a namespace for each test, and a dump of the state after a failure.

``KUBECONFIG`` selects the cluster; ``E2E_CLUSTER`` allows breaking it.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from e2e import install
from e2e.cluster import programs
from e2e.cluster.programs import Release
from e2e.kubectl import Kubectl, KubectlError
from e2e.suite import jobs
from e2e.suite.namespaces import own_namespace
from e2e.testbed import ClusterTestbed

# The number of pods whose logs are printed when a test fails.
_DUMPED: Final = 12
_FAILED: Final = pytest.StashKey[bool]()
# Tests that break shared state come after the others; those that read audit logs, last.
_LAST: Final = ("test_api_faults", "test_node_loss", "test_audit", "test_install")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LAST.index(item.path.stem) if item.path.stem in _LAST else -1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.excinfo and not call.excinfo.errisinstance(pytest.skip.Exception):
        item.stash[_FAILED] = True
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements that tests recorded as properties."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {name}: {value}")


@pytest.fixture(scope="session")
def cluster() -> Kubectl:
    """The cluster, possibly without dlctl."""
    return Kubectl()


@pytest.fixture(scope="session")
def controller(cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """dlctl, installed for all namespaces; kubectl in the namespace that it runs in."""
    folder = install.kustomization(
        tmp_path_factory.mktemp("install"), jobs.IMAGE, patches=[install.environment(jobs.SETTINGS)]
    )
    with install.installed(cluster, folder):
        yield cluster.within(install.NAMESPACE)


@pytest.fixture
def has_failed(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Return whether the test has failed, for fixtures that outlive it."""
    return lambda: request.node.stash.get(_FAILED, False)


@pytest.fixture
def kubectl(
    has_failed: Callable[[], bool], cluster: Kubectl, controller: Kubectl
) -> Iterator[Kubectl]:
    """kubectl in the test's own namespace, in a cluster with dlctl."""
    with own_namespace(cluster) as inside:
        yield inside
        if has_failed():
            dump(inside, controller)


@pytest.fixture
def namespace(
    has_failed: Callable[[], bool], submitted: Kubectl, controller: Kubectl
) -> Iterator[Kubectl]:
    """kubectl in the namespace of all jobs that the test's module has submitted."""
    yield submitted
    if has_failed():
        dump(submitted, controller)


@pytest.fixture(scope="session")
def testbed() -> ClusterTestbed:
    """The cluster with its owner's access; without it, tests that need it are skipped."""
    directory = os.environ.get("E2E_CLUSTER")
    if not directory:
        pytest.skip("the cluster is not ours to break: `make e2e` without KUBECONFIG has one")
    return ClusterTestbed(
        Path(directory), programs.folder(Release(os.environ.get("K8S", Release.NEWEST)))
    )


def dump(kubectl: Kubectl, controller: Kubectl) -> None:
    """Print the state of the cluster, for people."""
    for ask in (
        ("get", "dlctl", "-o", "yaml"),
        ("get", "pods", "-o", "wide"),
        ("get", "events", "--sort-by=.lastTimestamp"),
        ("describe", "pods"),
    ):
        _print(kubectl, *ask)
    for pod in kubectl.items("pods")[:_DUMPED]:
        _print(kubectl, "logs", _name(pod), "--all-containers", "--tail=40")
    for pod in controller.items("pods", install.SELECTOR):
        _print(controller, "logs", _name(pod), "--tail=60")


def _print(kubectl: Kubectl, *ask: str) -> None:
    try:
        said = kubectl(*ask)
    except KubectlError as error:
        said = str(error)
    print(f"--- {' '.join(ask)}\n{said}")


def _name(obj: JSON) -> str:
    name: str = obj["metadata"]["name"]
    return name

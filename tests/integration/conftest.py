"""One suite, two servers: each test runs on the embedded server, and on a real one if given.

On the embedded server time is simulated; on a real one a test takes real time.
"""

import pytest

from tests.support.documented import documented
from tests.support.harness import start_cluster
from tests.support.real_harness import KUBECONFIG, start_real_cluster

_EMBEDDED = pytest.param(
    documented(start_cluster), id="embedded", marks=pytest.mark.looptime(noop_cycles=8)
)
_REAL = pytest.param(
    start_real_cluster, id="real", marks=[pytest.mark.real, pytest.mark.timeout(300)]
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "start_cluster" in metafunc.fixturenames:
        both = KUBECONFIG and not metafunc.definition.get_closest_marker("embedded_only")
        metafunc.parametrize("start_cluster", [_EMBEDDED, _REAL] if both else [_EMBEDDED])

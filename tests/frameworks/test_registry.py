"""Discovery of frameworks, and reports of packages with invalid ones."""

import pytest

from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.registry import load_frameworks
from dlctl.frameworks.tensorflow import TFJob
from tests.frameworks.conftest import Install


def test_built_in_frameworks_are_found_by_entry_point() -> None:
    assert load_frameworks().frameworks == {"MXJob": MXJob, "TFJob": TFJob}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param("no_such_module:Job", "'no_such_module:Job' cannot be loaded", id="module"),
        pytest.param("dlctl.errors:Job", "'dlctl.errors:Job' cannot be loaded", id="attribute"),
        pytest.param("dlctl.errors:DlctlError", "is not a subclass of DLJob", id="other class"),
        pytest.param("dlctl.errors", "is not a subclass of DLJob", id="no class"),
        pytest.param("dlctl.frameworks.dljob:DLJob", "is not a subclass", id="the base itself"),
    ],
)
def test_invalid_entry_point_disables_only_its_own_kind(
    install: Install, value: str, said: str
) -> None:
    install("bad", value)
    found = load_frameworks()
    assert found.frameworks == {"MXJob": MXJob, "TFJob": TFJob}
    assert said in found.error_by_entry_point[value]


def test_first_of_two_frameworks_of_a_job_type_is_served_and_both_are_named(
    install: Install,
) -> None:
    install("rival", "tests.frameworks.duplicate_framework:MXJob")
    found = load_frameworks()
    assert found.frameworks["MXJob"] is MXJob
    (reason,) = found.error_by_entry_point.values()
    assert "dlctl.frameworks.mxnet.MXJob" in reason
    assert "duplicate_framework.MXJob" in reason


def test_framework_registered_twice_counts_once(install: Install) -> None:
    install("again", "dlctl.frameworks.mxnet:MXJob")
    assert load_frameworks().frameworks["MXJob"] is MXJob

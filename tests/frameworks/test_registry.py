"""How frameworks are found, and how a package that offers a bad one is named."""

import pytest

from dlctl.errors import ConfigError
from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.registry import installed
from dlctl.frameworks.tensorflow import TFJob
from tests.frameworks.conftest import Install


def test_own_frameworks_are_found_like_all_others() -> None:
    assert installed() == {"MXJob": MXJob, "TFJob": TFJob}


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
def test_entry_point_that_is_no_framework_is_named(install: Install, value: str, said: str) -> None:
    install("bad", value)
    with pytest.raises(ConfigError, match=said):
        installed()


def test_two_frameworks_of_one_job_type_are_both_named(install: Install) -> None:
    install("rival", "tests.frameworks.rival:MXJob")
    with pytest.raises(ConfigError, match=r"dlctl\.frameworks\.mxnet\.MXJob.*rival\.MXJob"):
        installed()


def test_one_framework_offered_twice_is_one(install: Install) -> None:
    install("again", "dlctl.frameworks.mxnet:MXJob")
    assert installed()["MXJob"] is MXJob

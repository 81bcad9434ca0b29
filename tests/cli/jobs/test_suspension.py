"""The patch of each form, applied: the dialect then reads what was asked for."""

from typing import Any

import pytest

from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.suspension import suspension_patch
from dlctl.dialects.et_operator.policies import SUSPENDED_ANNOTATION
from dlctl.errors import ConfigError
from dlctl.local.apiserver.patches.merge_patch import merged
from tests.builders import (
    bare_job,
    kind_of,
    manifest,
    mxjob,
    training_job,
    xgboost_operators_job,
)
from tests.cli.jobs.outcomes import succeeded


def _snapshot(wire: dict[str, Any]) -> JobSnapshot:
    return JobSnapshot.of(kind_of(wire["apiVersion"], wire["kind"]), wire)


def _elastic(**spec: Any) -> dict[str, Any]:
    return manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", spec)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(training_job("PyTorchJob", Master=1), id="map"),
        pytest.param(
            xgboost_operators_job(RunPolicy={"cleanPodPolicy": "None"}), id="former RunPolicy"
        ),
        pytest.param(mxjob(), id="list"),
        pytest.param(mxjob(runpolicy={"suspend": False}), id="list with another spelling"),
        pytest.param(_elastic(), id="elastic"),
        pytest.param(_elastic(runPolicy={"suspend": False}), id="elastic with a policy"),
        pytest.param(_elastic(RunPolicy={"Suspend": False}), id="elastic with another spelling"),
        pytest.param(_elastic(Suspend=False), id="elastic with another spelling in the spec"),
        pytest.param(
            xgboost_operators_job(RunPolicy={"Suspend": False}), id="map with another spelling"
        ),
    ],
)
def test_suspending_and_resuming_is_read_back(wire: dict[str, Any]) -> None:
    for suspended in (True, False):
        job = _snapshot(wire)
        patch = suspension_patch(job, suspended=suspended)
        assert patch is not None
        wire = merged(wire, patch)
        assert [name.lower() for name in wire["spec"]].count("runpolicy") <= 1
        decoded = _snapshot(wire).decoded
        assert decoded.dialect.run_policy(decoded).suspended is suspended
        assert suspension_patch(_snapshot(wire), suspended=suspended) is None


def test_annotation_that_suspends_is_cleared() -> None:
    wire = _elastic()
    wire["metadata"]["annotations"] = {SUSPENDED_ANNOTATION: "true"}
    patch = suspension_patch(_snapshot(wire), suspended=False)
    decoded = _snapshot(merged(wire, patch)).decoded
    assert decoded.dialect.run_policy(decoded).suspended is False


def test_form_without_the_field_cannot_be_suspended() -> None:
    with pytest.raises(ConfigError, match="has no field for it"):
        suspension_patch(_snapshot(bare_job()), suspended=True)


def test_job_that_has_ended_cannot_be_suspended() -> None:
    with pytest.raises(ConfigError, match="has ended"):
        suspension_patch(succeeded().job, suspended=True)

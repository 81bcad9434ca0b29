"""Values of annotations without an effect: users are warned where the API server takes them."""

import pytest

from dlctl.api.json_types import JSON
from tests.builders import make_job, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job


@pytest.mark.parametrize(
    ("job", "name", "value", "fix"),
    [
        pytest.param(
            training_job("PyTorchJob", Worker=1),
            "dlctl.dev/exit-code-policy",
            "kubeflw",
            "use kubeflow, or remove it",
            id="exit codes",
        ),
        pytest.param(
            mpi_job(),
            "dlctl.dev/ttl-deletes-job",
            "yes",
            "use true or false, or remove it",
            id="TTL",
        ),
        pytest.param(
            elastic_job(),
            "dlctl.dev/ssh-between-workers",
            "",
            "use true or false, or remove it",
            id="ssh",
        ),
    ],
)
def test_value_without_effect_is_a_warning(job: JSON, name: str, value: str, fix: str) -> None:
    job["metadata"]["annotations"] = {name: value}
    (warning,) = make_job(job).warnings
    assert warning.reason == "AnnotationIgnored"
    assert warning.message.startswith(f"metadata.annotations[{name}]: is ")
    assert warning.message.endswith(fix)


def test_value_with_an_effect_is_no_warning() -> None:
    job = training_job("PyTorchJob", Worker=1)
    job["metadata"]["annotations"] = {"dlctl.dev/exit-code-policy": "kubeflow"}
    assert make_job(job).warnings == ()

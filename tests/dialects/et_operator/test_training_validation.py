"""TrainingJobs rejected on reading, with the field and the fix."""

from typing import Any

import pytest

from dlctl.errors import InvalidJobError
from tests.builders import make_job
from tests.dialects.et_operator.manifests import elastic_job

SPECS = "spec.etReplicaSpecs"


def refusal(wire: dict[str, Any]) -> str:
    with pytest.raises(InvalidJobError) as caught:
        make_job(wire)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"launcher": {"replicas": 2}},
            f"{SPECS}.launcher.replicas: is 2, but there must be exactly 1 launcher",
            id="launchers",
        ),
        pytest.param(
            {"worker": {"replicas": 0}},
            f"{SPECS}.worker.replicas: is 0, but must be between 1 and 10000",
            id="no workers",
        ),
        pytest.param(
            {"worker": {"minReplicas": 3}},
            f"{SPECS}.worker.minReplicas: is 3, but replicas is 2: it must not be more",
            id="too few",
        ),
        pytest.param(
            {"worker": {"maxReplicas": 1}},
            f"{SPECS}.worker.maxReplicas: is 1, but replicas is 2: it must not be less",
            id="too many",
        ),
        pytest.param(
            {"worker": {"restartPolicy": "Sometimes"}},
            f"{SPECS}.worker.restartPolicy: is 'Sometimes', but must be one of Always, OnFailure, "
            "Never, ExitCode",
            id="policy of workers",
        ),
        pytest.param(
            {"launcher": {"restartPolicy": "Sometimes"}},
            f"{SPECS}.launcher.restartPolicy: is 'Sometimes', but must be one of Always, "
            "OnFailure, Never, ExitCode",
            id="policy of the launcher",
        ),
        pytest.param(
            {"restartPolicy": "Always"},
            "spec.restartPolicy: is 'Always', but must be one of Never, OnFailure",
            id="policy of the job",
        ),
        pytest.param(
            {"backoffLimit": -1},
            "spec.backoffLimit: is -1, but must be between 0 and 2147483647",
            id="limit",
        ),
        pytest.param(
            {"launcherAttachMode": "telnet"},
            "spec.launcherAttachMode: is 'telnet', but must be one of ssh, kubexec",
            id="attach mode",
        ),
        pytest.param(
            {"slotsPerWorker": 0},
            "spec.slotsPerWorker: is 0, but must be between 1 and 10000",
            id="slots",
        ),
        pytest.param(
            {"suspend": "yes"}, "spec.suspend: must be true or false, not 'yes'", id="suspend"
        ),
        pytest.param(
            {"worker": {"template": {"spec": {"containers": []}}}},
            f"{SPECS}.worker.template.spec.containers: is empty: give a container",
            id="no containers",
        ),
        pytest.param(
            {"launcher": {"template": None}},
            f"{SPECS}.launcher.template: is missing: give a pod template",
            id="no template",
        ),
        pytest.param(
            {"name": "m" * 53},
            f"metadata.name: makes names such as '{'m' * 53}-worker-999' of 64 characters, and "
            "DNS allows 63: shorten it by 1",
            id="long name",
        ),
        pytest.param(
            {"name": "my.job"},
            "metadata.name: is 'my.job', but services are named after it: use lower-case letters, "
            "digits and '-', begin with a letter, and do not end with '-'",
            id="name with a dot",
        ),
    ],
)
def test_invalid_job_is_rejected(fields: dict[str, Any], message: str) -> None:
    assert refusal(elastic_job(**fields)) == message


@pytest.mark.parametrize("type_", ["launcher", "worker"])
def test_launcher_and_worker_are_required(type_: str) -> None:
    wire = elastic_job()
    del wire["spec"]["etReplicaSpecs"][type_]
    assert refusal(wire) == f"{SPECS}.{type_}: is missing: give a spec of the {type_}"


@pytest.mark.parametrize("spec", [None, {}, {"etReplicaSpecs": None}])
def test_job_without_a_spec_is_rejected_without_harm(spec: Any) -> None:
    assert "launcher: is missing" in refusal({**elastic_job(), "spec": spec})


def test_longest_name_is_accepted() -> None:
    assert make_job(elastic_job(name="m" * 52)).key.name == "m" * 52

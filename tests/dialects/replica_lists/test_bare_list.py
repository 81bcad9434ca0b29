"""dl-operator's form: all keys are required, and the user's spec is not patched."""

from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.api.meta import UID
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.dialects.child_names import runtime_id
from dlctl.errors import InvalidJobError
from tests.builders import bare_job, kind_of, make_job, manifest, template

MPBA = "mpba.fbk.eu/v1"


def entry(**changes: Any) -> dict[str, Any]:
    whole = {"replicaType": "SCHEDULER", "replicas": 1, "template": template(), **changes}
    return {name: value for name, value in whole.items() if value is not None}


def refusal(spec: Any, kind: str = "MXJob") -> str:
    with pytest.raises(InvalidJobError) as caught:
        make_job(manifest(MPBA, kind, spec))
    return str(caught.value)


def test_mxjob_is_read_with_the_defaults_of_its_group() -> None:
    job = make_job(bare_job())
    assert [(spec.type, spec.replicas, spec.port) for spec in job.replica_specs] == [
        ("scheduler", 1, 9000),
        ("server", 1, 9000),
        ("worker", 2, 9000),
    ]
    assert job.success_policy.success_replicas[0] == Replica("scheduler", 0)
    assert job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    assert job.replica_specs[0].retry_policy is RetryPolicy.TABLE_AND_SIGNALS


def test_tfjob_is_read_with_the_defaults_of_its_framework() -> None:
    job = make_job(bare_job("TFJob", ps=1, worker=2))
    assert [spec.port for spec in job.replica_specs] == [2222, 2222]
    assert job.success_policy.success_replicas[0] == Replica("worker", 0)


def test_runtime_id_is_derived_and_not_written() -> None:
    job = make_job(bare_job())
    assert job.runtime_id == runtime_id(UID("job-uid"))
    assert job.spec_patch is None


def test_names_are_read_in_any_case() -> None:
    entries = [{"REPLICATYPE": "scheduler", "Replicas": 1, "Template": template()}]
    (spec,) = make_job(manifest(MPBA, "MXJob", entries)).replica_specs
    assert (spec.type, spec.replicas) == ("scheduler", 1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(None, "spec: is missing: give a list", id="no spec"),
        pytest.param({"a": 1}, "spec: must be a list, not {'a': 1}", id="object"),
        pytest.param(
            [entry(replicas=None)], "spec[0].replicas: is missing: say how many", id="no replicas"
        ),
        pytest.param(
            [entry(replicaType=None)],
            "spec[0].replicaType: is missing: give one of SCHEDULER, SERVER, WORKER",
            id="no type",
        ),
        pytest.param(
            [entry(template=None)],
            "spec[0].template: is missing: give a pod template",
            id="no template",
        ),
        pytest.param([None], "spec[0].replicas: is missing: say how many", id="null entry"),
        pytest.param(
            [entry(), entry()],
            "spec[1]: lists SCHEDULER twice: give one entry a type",
            id="type twice",
        ),
        pytest.param(
            [entry(replicas=2)],
            "spec[0].replicas: is 2, but there must be exactly 1 SCHEDULER",
            id="two schedulers",
        ),
        pytest.param(
            [entry(replicaType="WORKER")],
            "spec: lists no SCHEDULER, but there must be exactly 1: add it",
            id="no scheduler",
        ),
    ],
)
def test_message_names_the_field_and_the_fix(spec: Any, message: str) -> None:
    assert refusal(spec) == message


@pytest.mark.parametrize("workers", [None, 0])
def test_job_without_its_chief_is_rejected(workers: int | None) -> None:
    counts = {"ps": 1} if workers is None else {"ps": 1, "worker": workers}
    said = refusal(bare_job("TFJob", **counts)["spec"], "TFJob")
    assert said == "spec: has no WORKER, which decides the job: add an entry"


def test_labels_are_dl_operators() -> None:
    job = make_job(bare_job())
    dialect = kind_of(MPBA).dialects["v1"]
    replica = Replica("worker", 1)
    assert dialect.labels(job, replica) == {
        "pod_name": job.child_name(replica),
        "job_name": "linear",
    }

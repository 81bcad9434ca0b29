"""TF_CONFIG, exactly."""

import json

import pytest

from dlctl.api.job import Replica
from dlctl.frameworks.tensorflow import TFJob
from tests.builders import bare_job, make_job


def test_config_lists_the_cluster_and_the_task() -> None:
    job = make_job(bare_job("TFJob", ps=1, worker=2))
    variables = TFJob(job).get_environment_variables(job.replica_specs[1], 1)
    assert list(variables) == ["TF_CONFIG"]
    assert json.loads(variables["TF_CONFIG"]) == {
        "cluster": {
            "ps": [f"{job.child_name(Replica('ps', 0))}:2222"],
            "worker": [
                f"{job.child_name(Replica('worker', 0))}:2222",
                f"{job.child_name(Replica('worker', 1))}:2222",
            ],
        },
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }


@pytest.mark.parametrize(("counts", "types"), [({}, ["worker"]), ({"ps": 0}, ["ps", "worker"])])
def test_config_has_the_types_that_are_listed(counts: dict[str, int], types: list[str]) -> None:
    job = make_job(bare_job("TFJob", **counts, worker=1))
    variables = TFJob(job).get_environment_variables(job.replica_specs[-1], 0)
    assert list(json.loads(variables["TF_CONFIG"])["cluster"]) == types


def test_worker_zero_is_the_chief() -> None:
    assert TFJob.default_chief() == Replica("worker", 0)

"""The DMLC_* variables, exactly."""

import pytest

from dlctl.frameworks.mxnet import MXJob
from tests.builders import entry, make_job, mxjob


@pytest.mark.parametrize("role", ["scheduler", "server", "worker"])
def test_environment_differs_between_roles_only_in_the_role(role: str) -> None:
    job = make_job(servers=2, workers=3, RuntimeId="ab1c")
    spec = job.replica_spec(role)
    assert spec is not None
    assert MXJob(job).get_environment_variables(spec, 0) == {
        "DMLC_PS_ROOT_PORT": "9091",
        "DMLC_PS_ROOT_URI": "linear-scheduler-ab1c-0",
        "DMLC_NUM_SERVER": "2",
        "DMLC_NUM_WORKER": "3",
        "DMLC_ROLE": role,
        "DMLC_USE_KUBERNETES": "1",
    }


def test_port_is_the_schedulers_for_all_roles() -> None:
    specs = [entry("WORKER", PsRootPort=1111), entry("SCHEDULER", PsRootPort=9000)]
    job = make_job(mxjob(replicaSpecs=specs))
    variables = MXJob(job).get_environment_variables(job.replica_specs[0], 0)
    assert variables["DMLC_PS_ROOT_PORT"] == "9000"


def test_unlisted_roles_count_as_zero() -> None:
    job = make_job(mxjob(replicaSpecs=[entry("SCHEDULER")]))
    variables = MXJob(job).get_environment_variables(job.replica_specs[0], 0)
    assert (variables["DMLC_NUM_SERVER"], variables["DMLC_NUM_WORKER"]) == ("0", "0")


def test_scheduler_address_of_a_long_job_name_is_its_service() -> None:
    job = make_job(mxjob(name="a" * 60, RuntimeId="ab1c"))
    variables = MXJob(job).get_environment_variables(job.replica_specs[0], 0)
    assert variables["DMLC_PS_ROOT_URI"] == f"{'a' * 40}-scheduler-ab1c-0"

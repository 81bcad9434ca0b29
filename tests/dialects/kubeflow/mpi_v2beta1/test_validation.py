"""What MPIJob v2beta1 refuses, with the field and the fix."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.errors import InvalidJobError
from tests.builders import make_job, template
from tests.mpi_v2beta1 import mpi_job

SPECS = "spec.mpiReplicaSpecs"


def refusal(wire: JSON) -> str:
    with pytest.raises(InvalidJobError) as caught:
        make_job(wire)
    return str(caught.value)


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        pytest.param(
            mpi_job(0),
            f"{SPECS}.Worker.replicas: must be 1 or more; a job without workers lists no Worker",
            id="no workers",
        ),
        pytest.param(
            mpi_job(slotsPerWorker=-1),
            "spec.slotsPerWorker: is -1, but must be between 0 and 2147483647",
            id="slots",
        ),
        pytest.param(
            mpi_job(mpiImplementation="MVAPICH"),
            "spec.mpiImplementation: is 'MVAPICH', but must be one of OpenMPI, Intel, MPICH",
            id="implementation",
        ),
        pytest.param(
            mpi_job(sshAuthMountPath="/a:/b"),
            "spec.sshAuthMountPath: is '/a:/b', but a mount path has no colon",
            id="path",
        ),
        pytest.param(
            mpi_job(runLauncherAsWorker="yes"),
            "spec.runLauncherAsWorker: must be true or false, not 'yes'",
            id="launcher as worker",
        ),
        pytest.param(
            mpi_job(policy={"cleanPodPolicy": "Some"}),
            "spec.runPolicy.cleanPodPolicy: is 'Some', but must be one of All, Running, None",
            id="clean-up",
        ),
        pytest.param(
            mpi_job(policy={"backoffLimit": -1}),
            "spec.runPolicy.backoffLimit: is -1, but must be between 0 and 2147483647",
            id="retries",
        ),
        pytest.param(
            mpi_job(name="3d"), "metadata.name: is '3d', but services are named after it", id="name"
        ),
        pytest.param(
            mpi_job(11, name="m" * 54), "metadata.name: makes names such as", id="long name"
        ),
        pytest.param(
            mpi_job(None, name="m" * 55), "metadata.name: makes names such as", id="of launcher"
        ),
    ],
)
def test_invalid_job_is_refused_with_field_and_fix(wire: JSON, said: str) -> None:
    assert refusal(wire).startswith(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"Launcher": None},
            f"{SPECS}: lists no Launcher, but there must be exactly 1: add it",
            id="no launcher",
        ),
        pytest.param(
            {"Launcher": {"replicas": 2, "template": template("mpi")}},
            f"{SPECS}.Launcher.replicas: is 2, but there must be exactly 1 Launcher",
            id="two launchers",
        ),
        pytest.param(
            {"Worker": {"template": template("mpi")}},
            f"{SPECS}.Worker.replicas: must be 1 or more",
            id="workers without a number",
        ),
        pytest.param(
            {"Launcher": {"restartPolicy": "Always", "template": template("mpi")}},
            f"{SPECS}.Launcher.restartPolicy: is 'Always', but must be one of OnFailure, Never",
            id="restart policy",
        ),
        pytest.param(
            {"Worker": {"replicas": 1, "template": {"spec": {"containers": []}}}},
            f"{SPECS}.Worker.template.spec.containers: is empty: give a container",
            id="no container",
        ),
        pytest.param(
            {"Chief": {"template": template("mpi")}},
            f"{SPECS}.Chief: is not a replica type: it must be one of Launcher, Worker",
            id="type",
        ),
    ],
)
def test_invalid_replicas_are_refused_with_field_and_fix(change: JSON, said: str) -> None:
    wire = mpi_job()
    wire["spec"]["mpiReplicaSpecs"].update(change)
    assert refusal(wire).startswith(said)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(mpi_job(None), id="launcher alone"),
        pytest.param(mpi_job(slotsPerWorker=0), id="no slots"),
        pytest.param(mpi_job(10, name="m" * 54), id="longest name"),
        pytest.param(mpi_job(policy={"ttlSecondsAfterFinished": 0, "backoffLimit": 0}), id="zero"),
    ],
)
def test_job_that_mpi_operator_runs_is_valid(wire: JSON) -> None:
    assert make_job(wire).replica_specs

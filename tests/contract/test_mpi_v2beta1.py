"""What the CRD of MPIJob v2beta1 rejects, accepts and fills in, without webhooks."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.builders import template
from tests.contract.api import Api
from tests.contract.jobs import definition_of, plural, refusal
from tests.mpi_v2beta1 import mpi_job


def submitted(workers: int | None = 2, *, name: str = "a", **spec: Any) -> JSON:
    """Return a job as a user writes it."""
    wire = mpi_job(workers, name=name, **spec)
    if "sshAuthMountPath" not in spec:
        del wire["spec"]["sshAuthMountPath"]
    return {**wire, "metadata": {"name": name}}


def with_replicas(**change: Any) -> JSON:
    wire = submitted()
    wire["spec"]["mpiReplicaSpecs"].update(change)
    return wire


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        pytest.param(
            submitted(0),
            "Worker.replicas must be 1 or more; a job without workers lists no Worker",
            id="no workers",
        ),
        pytest.param(
            with_replicas(Worker={"template": template("mpi")}),
            "Worker.replicas must be 1 or more",
            id="workers without a number",
        ),
        pytest.param(
            with_replicas(Launcher={"replicas": 2, "template": template("mpi")}),
            "Launcher.replicas must be 1",
            id="two launchers",
        ),
        pytest.param(
            with_replicas(Launcher={"restartPolicy": "Always", "template": template("mpi")}),
            'Unsupported value: "Always": supported values: "", "Never", "OnFailure"',
            id="restart policy",
        ),
        pytest.param(
            submitted(mpiImplementation="MVAPICH"),
            'spec.mpiImplementation: Unsupported value: "MVAPICH"',
            id="implementation",
        ),
        pytest.param(
            submitted(slotsPerWorker=-1), "spec.slotsPerWorker: Invalid value", id="slots"
        ),
        pytest.param(
            submitted(sshAuthMountPath="/a:/b"), "spec.sshAuthMountPath: Invalid value", id="path"
        ),
        pytest.param(
            submitted(policy={"failurePolicy": {"rules": [{"action": "Retry"}]}}),
            'failurePolicy.rules[0].action: Unsupported value: "Retry"',
            id="action of a failure policy",
        ),
        pytest.param(
            submitted(
                policy={
                    "failurePolicy": {"rules": [{"action": "FailJob", "targetReplicas": ["PS"]}]}
                }
            ),
            "targetReplicas[0] in body should match '^(?i:launcher|worker)$'",
            id="replica type of a failure policy",
        ),
        pytest.param(
            submitted(policy={"failurePolicy": {}, "backoffLimit": 3}),
            "spec.runPolicy.backoffLimit: Invalid value: cannot be combined with failurePolicy",
            id="two limits",
        ),
        pytest.param(submitted(11, name="m" * 54), "metadata.name is too long", id="long name"),
        pytest.param(submitted(None, name="m" * 55), "metadata.name is too long", id="of launcher"),
        pytest.param(submitted(name="3d"), "and begin with a letter", id="name"),
    ],
)
async def test_invalid_job_is_rejected_with_the_field_and_the_fix(
    api: Api, wire: JSON, said: str
) -> None:
    await api.define(definition_of("MPIJob"))
    assert said in await refusal(api, wire)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(submitted(None), id="launcher alone"),
        pytest.param(submitted(slotsPerWorker=0), id="no slots"),
        pytest.param(submitted(launcherCreationPolicy="Whenever"), id="unknown policy"),
        pytest.param(submitted(sshAuthMountPath=""), id="empty path"),
        pytest.param(submitted(10, name="m" * 54), id="longest name"),
        pytest.param(submitted(policy={"managedBy": "kueue.x-k8s.io/multikueue"}), id="MultiKueue"),
        pytest.param(submitted(policy={"managedBy": "example.com/mine"}), id="other controller"),
    ],
)
async def test_job_that_mpi_operator_runs_is_accepted(api: Api, wire: JSON) -> None:
    await api.define(definition_of("MPIJob"))
    assert await refusal(api, wire) == ""


async def test_defaults_are_those_of_mpi_operator(api: Api) -> None:
    await api.define(definition_of("MPIJob"))
    path = api.path(plural("MPIJob"), group="kubeflow.org/v2beta1")
    stored = (await api.post(path, submitted(policy={}))).body["spec"]
    del stored["mpiReplicaSpecs"]
    assert stored == {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runPolicy": {"suspend": False},
    }

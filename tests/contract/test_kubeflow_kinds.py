"""What the CRDs of Kubeflow's kinds reject and accept, without webhooks."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.bad_jobs import LONGEST, MPI, NAMES, NONE, TEMPLATES, TYPES
from tests.contract.bad_policies import ELASTIC, POLICIES
from tests.contract.jobs import (
    GROUP,
    definition_of,
    elastic,
    job,
    plural,
    policy,
    refusal,
    replicas,
    scheduling,
)


@pytest.mark.parametrize(("wire", "said"), [*TYPES, *TEMPLATES, *POLICIES, *ELASTIC, *MPI, *NAMES])
async def test_invalid_job_is_rejected_with_the_field_and_the_fix(
    api: Api, wire: JSON, said: str
) -> None:
    await api.define(definition_of(wire["kind"]))
    assert said in await refusal(api, wire)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(job("PyTorchJob", name=LONGEST, counts={"Worker": 10}), id="longest name"),
        pytest.param(
            job("PyTorchJob", replicas("PyTorchJob", "Master", {"replicas": NONE})),
            id="no number of masters",
        ),
        pytest.param(
            job(
                "PyTorchJob",
                {
                    "nprocPerNode": "auto",
                    **elastic(minReplicas=1, maxReplicas=2, rdzvBackend="c10d"),
                },
            ),
            id="elastic",
        ),
        pytest.param(
            job("PyTorchJob", elastic(minReplicas=0, maxReplicas=2, metrics=[])),
            id="elastic down to zero",
        ),
        pytest.param(
            job("TFJob", scheduling(minResources={"cpu": 1, "memory": "1Gi"}, queue="q")), id="gang"
        ),
        pytest.param(
            job("TFJob", {"cleanPodPolicy": "Running", "successPolicy": ""}),
            id="policies in the spec",
        ),
        pytest.param(
            job("MXJob", {"jobMode": "MXTune"}, {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}),
            id="tuning",
        ),
        pytest.param(job("MPIJob", {"slotsPerWorker": 2, "mainContainer": "mpi"}), id="MPI"),
        pytest.param(
            job("PyTorchJob", policy(backoffLimit=1.0, ttlSecondsAfterFinished=60.0)),
            id="floats in the run policy",
        ),
        pytest.param(
            job("JAXJob", policy(managedBy="kueue.x-k8s.io/multikueue")), id="managed elsewhere"
        ),
        pytest.param(
            job("PaddleJob", replicas("PaddleJob", "Worker", {"restartPolicy": "ExitCode"})),
            id="exit code",
        ),
    ],
)
async def test_valid_job_is_accepted(api: Api, wire: JSON) -> None:
    await api.define(definition_of(wire["kind"]))
    assert await refusal(api, wire) == ""


@pytest.mark.parametrize(
    ("before", "change", "said"),
    [
        pytest.param(
            {},
            policy(managedBy="kueue.x-k8s.io/multikueue"),
            "spec.runPolicy.managedBy: Invalid value: field is immutable",
            id="manager set",
        ),
        pytest.param(
            policy(managedBy="kubeflow.org/training-operator"),
            policy(managedBy=None),
            "spec.runPolicy.managedBy: Invalid value: field is immutable",
            id="manager unset",
        ),
        pytest.param(
            policy(managedBy="kubeflow.org/training-operator"),
            policy(managedBy="kueue.x-k8s.io/multikueue"),
            "spec.runPolicy.managedBy: Invalid value: field is immutable",
            id="manager changed",
        ),
        pytest.param(
            scheduling(queue="a"),
            scheduling(queue="b"),
            "spec.runPolicy.schedulingPolicy.queue is immutable",
            id="queue changed",
        ),
        pytest.param(
            {},
            replicas("JAXJob", "Worker", {"replicas": 11}),
            "metadata.name is too long",
            id="one replica too many for the name",
        ),
    ],
)
async def test_forbidden_change_of_a_job_is_rejected(
    api: Api, before: JSON, change: JSON, said: str
) -> None:
    await api.define(definition_of("JAXJob"))
    name = "a" * 54
    assert await refusal(api, job("JAXJob", before, name=name)) == ""
    path = api.path("jaxjobs", name, group=GROUP)
    answer = await api.patch(path, {"spec": change})
    assert said in api.failure_text(answer)
    assert (await api.patch(path, {"spec": policy(suspend=True)})).code == 200


async def test_suspend_defaults_to_false(api: Api) -> None:
    await api.define(definition_of("XGBoostJob"))
    assert await refusal(api, job("XGBoostJob", policy(backoffLimit=3))) == ""
    stored = await api.get(api.path("xgboostjobs", "a", group=GROUP))
    assert stored.body["spec"]["runPolicy"] == {"backoffLimit": 3, "suspend": False}


async def test_misspelt_field_is_reported(api: Api) -> None:
    await api.define(definition_of("PyTorchJob"))
    wire = job("PyTorchJob", policy(suspended=True))
    path = api.path("pytorchjobs", group=GROUP)
    answer = await api.post(path, wire, fieldValidation="Strict")
    assert answer.code == 400
    assert 'unknown field "spec.runPolicy.suspended"' in answer.body["message"]


@pytest.mark.parametrize("kind", ["PyTorchJob", "PaddleJob", "JAXJob"])
async def test_workers_are_scaled(api: Api, kind: str) -> None:
    await api.define(definition_of(kind))
    assert await refusal(api, job(kind)) == ""
    path = api.path(plural(kind), "a", group=GROUP)
    workers = {"active": 2, "selector": "x=y"}
    status = {"status": {"replicaStatuses": {"Worker": workers}}}
    assert (await api.patch(f"{path}/status", status)).code == 200
    scaled = await api.patch(f"{path}/scale", {"spec": {"replicas": 5}})
    assert (scaled.body["spec"], scaled.body["status"]) == (
        {"replicas": 5},
        {"replicas": 2, "selector": "x=y"},
    )

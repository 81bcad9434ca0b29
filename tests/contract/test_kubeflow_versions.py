"""The versions of one of Kubeflow's kinds: each in its form, all stored under the schema of v1."""

from pathlib import Path

import pytest
import yaml

from dlctl.api.json_types import JSON
from tests.builders import KINDS, entry, job_object, mxjob, template
from tests.contract.api import Api
from tests.contract.jobs import GROUP, definition_of, job, plural, refusal
from tests.contract.kubeflow_jobs import (
    LISTED,
    OLDER_MAPS,
    TORCH_LISTED,
    tf_map,
    tfjob,
)

SAMPLES = Path(__file__).parents[2].parent / "shared" / "samples" / "kubeflow-v1"
SERVED = [kind.resource.kind for kind in KINDS if kind.resource.group == "kubeflow.org"]
MANIFESTS = [
    (path.stem, wire)
    for path in sorted(SAMPLES.glob("*.yaml"))
    if (wire := yaml.safe_load(path.read_text()))["kind"] in SERVED
]


ELASTIC = job("PyTorchJob", {"elasticPolicy": {"maxReplicas": 3, "rdzvConf": [{"key": "a"}]}})
TOP = {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60}
DRAFT = {
    "tfReplicaSpecs": tf_map("Chief", "PS", "Eval"),
    "restartPolicy": "OnFailure",
    "cleanPodPolicy": "None",
}
NEVER, ON_FAILURE = {"restartPolicy": "Never"}, {"restartPolicy": "OnFailure"}
NO_DEFAULTS: dict[str, JSON] = {
    "MPIJob": {
        "backoffLimit": 1,
        "mpiReplicaSpecs": dict.fromkeys(("Launcher", "Worker"), NEVER),
    }
}
MPI_TEMPLATE: JSON = {
    "apiVersion": "kubeflow.org/v1alpha1",
    "kind": "MPIJob",
    "metadata": {"name": "a"},
    "spec": {
        "template": template("mpi"),
        "gpus": 16,
        "gpusPerNode": 8,
        "launcherOnMaster": True,
        "launcherResources": {},
        "mountsOnLauncher": True,
        "backoffLimit": 1,
        "cleanPodPolicy": "All",
    },
}
OLDER = [
    pytest.param(MPI_TEMPLATE, id="MPIJob v1alpha1"),
    pytest.param(LISTED, id="v1alpha1"),
    pytest.param(TORCH_LISTED, id="PyTorchJob v1alpha1"),
    pytest.param(tfjob("v1alpha2", DRAFT), id="v1alpha2, draft"),
    pytest.param(
        tfjob("v1alpha2", {"tfReplicaSpecs": tf_map("ps", "WORKER"), **TOP}), id="v1alpha2"
    ),
    pytest.param(tfjob("v1beta1", {"tfReplicaSpecs": tf_map("Ps", "Worker"), **TOP}), id="v1beta1"),
    pytest.param(tfjob("v1beta2", {"tfReplicaSpecs": tf_map("Worker"), **TOP}), id="v1beta2"),
    pytest.param(tfjob("v1", {"tfReplicaSpecs": tf_map("Worker"), **TOP}), id="v1"),
    pytest.param(
        {
            **mxjob(runPolicy={"CleanPodPolicy": "running", "suspend": False}),
            "metadata": {"name": "a"},
        },
        id="MXJob v1alpha1",
    ),
    *(
        pytest.param(
            {**job(kind, TOP | NO_DEFAULTS.get(kind, {})), "apiVersion": f"kubeflow.org/{version}"},
            id=f"{kind} {version}",
        )
        for kind, versions in OLDER_MAPS.items()
        for version in versions
    ),
]


@pytest.mark.parametrize("wire", OLDER)
async def test_job_of_an_older_version_is_stored_completely_and_can_be_updated(
    api: Api, wire: JSON
) -> None:
    kind = wire["kind"]
    await api.define(definition_of(kind))
    assert await refusal(api, wire) == ""
    path = api.path(plural(kind), "a", group=GROUP)
    stored = (await api.get(path)).body
    assert stored["spec"] == wire["spec"]
    served = next(each for each in KINDS if each.resource.kind == kind)
    obj = served.decode(job_object(stored))
    job = served.read(obj)
    status = obj.dialect.write_status(job.status)
    shown = {"Worker": {"active": 1}}
    change = {"status": {**status, "replicaStatuses": shown}}
    assert (await api.patch(f"{path}/status", change)).code == 200
    if job.spec_patch:
        assert (await api.patch(path, {"spec": job.spec_patch})).code == 200
    older = api.path(plural(kind), "a", group=wire["apiVersion"])
    found = (await api.get(older)).body
    assert found["apiVersion"] == wire["apiVersion"]
    assert found["status"]["replicaStatuses"] == shown
    assert found["spec"] == {**wire["spec"], **(job.spec_patch or {})}


@pytest.mark.parametrize(
    ("kind", "version", "defaults"),
    [
        pytest.param("TFJob", "v1alpha2", {"cleanPodPolicy": "Running"}, id="TFJob v1alpha2"),
        pytest.param("TFJob", "v1beta2", {"cleanPodPolicy": "Running"}, id="TFJob v1beta2"),
        pytest.param("TFJob", "v1", {}, id="TFJob v1"),
        pytest.param("MXJob", "v1beta1", {"cleanPodPolicy": "All"}, id="MXJob v1beta1"),
        pytest.param("PyTorchJob", "v1beta2", {}, id="PyTorchJob v1beta2"),
        pytest.param(
            "MPIJob",
            "v1alpha2",
            {
                "backoffLimit": 6,
                "mpiReplicaSpecs": dict.fromkeys(("Launcher", "Worker"), ON_FAILURE),
            },
            id="MPIJob v1alpha2",
        ),
    ],
)
async def test_defaults_of_an_older_version_are_stored(
    api: Api, kind: str, version: str, defaults: JSON
) -> None:
    await api.define(definition_of(kind))
    wire = {**job(kind), "apiVersion": f"kubeflow.org/{version}"}
    assert await refusal(api, wire) == ""
    stored = (await api.get(api.path(plural(kind), "a", group=GROUP))).body
    assert stored["spec"] == job(kind, defaults)["spec"]


@pytest.mark.parametrize("kind", [*OLDER_MAPS, "TFJob"])
async def test_older_version_takes_unknown_fields_as_its_operator_did(api: Api, kind: str) -> None:
    await api.define(definition_of(kind))
    wire = {
        **job(kind, {"worldSize": 2, "runPolicy": {"x": 1}}),
        "apiVersion": "kubeflow.org/v1alpha2",
    }
    path = api.path(plural(kind), group=wire["apiVersion"])
    answer = await api.post(path, wire, fieldValidation="Strict")
    assert answer.code == 201, answer.body["message"]
    stored = await api.get(api.path(plural(kind), "a", group=GROUP))
    replicas = next(iter(job(kind)["spec"]))
    assert set(stored.body["spec"][replicas]) == set(wire["spec"][replicas])


async def test_job_of_an_older_version_is_validated_by_the_same_rules(api: Api) -> None:
    await api.define(definition_of("TFJob"))
    both = tfjob("v1beta2", {"tfReplicaSpecs": tf_map("chief", "MASTER")})
    assert "Chief and Master exclude each other" in await refusal(api, both)
    boss = tfjob("v1alpha1", {"replicaSpecs": [{**entry("WORKER"), "tfReplicaType": "BOSS"}]})
    assert "tfReplicaType must be one of MASTER, PS, WORKER" in await refusal(api, boss)


@pytest.mark.parametrize("listed", [LISTED, TORCH_LISTED, mxjob()], ids=lambda wire: wire["kind"])
@pytest.mark.parametrize("name", ["", "replica_specs", "ReplicaSpecs"])
async def test_list_whose_status_v1_would_reject_is_not_stored(
    api: Api, listed: JSON, name: str
) -> None:
    await api.define(definition_of(listed["kind"]))
    spec = dict(listed["spec"])
    entries = spec.pop("replicaSpecs")
    wire = {
        **listed,
        "metadata": {"name": "a"},
        "spec": {**spec, **({name: entries} if name else {})},
    }
    assert "replicaSpecs is missing: list the replicas" in await refusal(api, wire)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_v1_only_field_is_rejected_in_older_versions(api: Api, version: str) -> None:
    await api.define(definition_of("PyTorchJob"))
    older = {**job("PyTorchJob"), "apiVersion": f"kubeflow.org/{version}"}
    wire = TORCH_LISTED if version == "v1alpha1" else older
    spec = {**wire["spec"], "elasticPolicy": {"maxReplicas": "three"}}
    refused = await refusal(api, {**wire, "spec": spec})
    assert "elasticPolicy: Invalid value" in refused
    assert "is a field of v1: write apiVersion kubeflow.org/v1" in refused


@pytest.mark.parametrize(
    ("wire", "version", "field"),
    [
        pytest.param(ELASTIC, "v1alpha1", "elasticPolicy", id="elasticity, list"),
        pytest.param(ELASTIC, "v1beta1", "elasticPolicy", id="elasticity, map"),
        pytest.param(ELASTIC, "v1alpha1", "pytorchReplicaSpecs", id="map of PyTorchJob"),
        pytest.param(job("TFJob"), "v1alpha1", "tfReplicaSpecs", id="map of TFJob"),
        pytest.param(job("MXJob"), "v1alpha1", "mxReplicaSpecs", id="map of MXJob"),
    ],
)
async def test_older_version_keeps_v1_only_fields_unchanged(
    api: Api, wire: JSON, version: str, field: str
) -> None:
    await api.define(definition_of(wire["kind"]))
    assert await refusal(api, wire) == ""
    path = api.path(plural(wire["kind"]), "a", group=f"kubeflow.org/{version}")
    answer = await api.patch(f"{path}/status", {"status": {"startTime": "2026-01-01T12:00:00Z"}})
    assert answer.code == 200, answer.body["message"]
    assert answer.body["spec"] == wire["spec"]
    answer = await api.patch(path, {"metadata": {"labels": {"x": "y"}}})
    assert answer.code == 200, answer.body["message"]

    answer = await api.patch(path, {"spec": {field: {"x": "y"}}})
    assert answer.code == 422
    assert f"spec.{field}: Invalid value" in answer.body["message"]


@pytest.mark.parametrize("wire", [pytest.param(wire, id=stem) for stem, wire in MANIFESTS])
async def test_v1_sample_is_stored_unchanged(api: Api, wire: JSON) -> None:
    await api.define(definition_of(wire["kind"]))
    here = {**wire, "metadata": {"name": wire["metadata"]["name"]}}
    path = api.path(plural(wire["kind"]), group=wire["apiVersion"])
    answer = await api.post(path, here, fieldValidation="Strict")
    assert answer.code == 201, answer.body
    defaults = {"suspend": False} if "runPolicy" in wire["spec"] else {}
    policy = {"runPolicy": wire["spec"].get("runPolicy", {}) | defaults} if defaults else {}
    assert answer.body["spec"] == {**wire["spec"], **policy}


# Stored without rules, although our rules would reject it.
BROKEN: JSON = {
    "pytorchReplicaSpecs": {
        "worker": {"template": {"spec": {"containers": [{"name": "main"}]}}},
        "Boss": {"replicas": -1, "restartPolicy": "Sometimes"},
    },
    "runPolicy": {"managedBy": "me", "cleanPodPolicy": "Some", "schedulingPolicy": {"queue": "q"}},
    "elasticPolicy": {"minReplicas": 3, "maxReplicas": 2},
}


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        pytest.param("a", BROKEN, id="bad spec"),
        pytest.param("a.b", job("PyTorchJob")["spec"], id="name with a dot"),
        pytest.param("a" * 60, job("PyTorchJob")["spec"], id="name too long"),
    ],
)
async def test_invalid_job_stored_before_the_rules_can_be_updated(
    api: Api, name: str, spec: JSON
) -> None:
    # Its own CRD, which can be deleted: others use the real one meanwhile.
    group = f"{api.namespace}.dlctl.dev"
    ours = definition_of("PyTorchJob")
    ours["metadata"] = {"name": f"pytorchjobs.{group}"}
    ours["spec"]["group"] = group
    version = ours["spec"]["versions"][0]
    ours["spec"]["versions"] = [version]
    opened = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    before = {**version, "schema": {"openAPIV3Schema": opened}}
    await api.define({**ours, "spec": {**ours["spec"], "versions": [before]}})
    wire = {**job("PyTorchJob", name=name), "apiVersion": f"{group}/v1", "spec": spec}
    assert await refusal(api, wire) == ""

    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.{group}"
    assert (await api.patch(crd, {"spec": {"versions": [version]}})).code == 200
    path = api.path("pytorchjobs", group=f"{group}/v1")
    await _in_effect(api, path, {**wire, "metadata": {"name": f"{name[:-1]}c"}})

    status = {"status": {"conditions": [{"type": "Created", "status": "True"}]}}
    answer = await api.patch(f"{path}/{name}/status", status)
    assert answer.code == 200, answer.body["message"]
    labels = {"metadata": {"labels": {"x": "y"}, "finalizers": ["x/y"]}}
    assert (await api.patch(f"{path}/{name}", labels)).code == 200
    assert (await api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})).code == 200
    stored = (await api.get(f"{path}/{name}")).body
    assert stored["status"] == status["status"]


async def _in_effect(api: Api, path: str, broken: JSON) -> None:
    """Wait until a CRD that rejects a job is in effect."""
    for _ in range(3000):
        answer = await api.post(path, broken)
        if answer.code == 422:
            return
        await api.delete(f"{path}/{broken['metadata']['name']}")
    raise AssertionError("it is taken")

"""What the CRDs of et-operator's kinds reject and accept, for new and stored objects."""

import asyncio
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import CRDS, Api
from tests.contract.elastic_kinds import DEFINITIONS, path
from tests.contract.jobs import merged
from tests.dialects.et_operator.manifests import elastic_job, scale_in, scale_out

ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
SPECS = "spec.etReplicaSpecs"
ONE_OF_THEM = ".spec.toDelete.count or .spec.toDelete.podNames, only one of them should be set"
NONE: Any = None


def new(wire: JSON, change: JSON | None = None) -> JSON:
    """Return an object as users submit it, with a merge patch applied to its spec."""
    metadata = {"name": wire["metadata"]["name"]}
    return {**wire, "metadata": metadata, "spec": merged(wire["spec"], change or {})}


def job(change: JSON | None = None, **fields: Any) -> JSON:
    return new(elastic_job(**fields), change)


def bad(wire: JSON, said: str, /, id_: str) -> Any:
    return pytest.param(wire, said, id=f"{wire['kind']}, {id_}")


BAD = [
    bad(job({"etReplicaSpecs": NONE}), f"{SPECS}: Required value", "no replicas"),
    bad(job({"etReplicaSpecs": {"worker": NONE}}), f"{SPECS}.worker: Required value", "no worker"),
    bad(
        job(launcher={"replicas": 2}),
        f"{SPECS}.launcher.replicas in body should be less than or equal to 1",
        "launchers",
    ),
    bad(
        job(worker={"minReplicas": 3}),
        f"{SPECS}.worker.minReplicas: Invalid value: minReplicas must not be more than replicas",
        "too few",
    ),
    bad(
        job(worker={"maxReplicas": 1}),
        f"{SPECS}.worker.replicas: Invalid value: replicas must not be more than maxReplicas",
        "too many",
    ),
    bad(job(launcherAttachMode="telnet"), 'supported values: "", "ssh", "kubexec"', "attach mode"),
    bad(job(restartPolicy="Always"), 'supported values: "Never", "OnFailure"', "restart policy"),
    bad(job(name="m" * 53), "metadata.name must have at most 52 characters", "long name"),
    bad({**job(), "spec": NONE}, "spec", "no spec"),
    bad(new(scale_in(), {"toDelete": NONE}), "spec.toDelete: Required value", "nothing"),
    bad(new(scale_in(), {"toDelete": {"podNames": ["a"]}}), ONE_OF_THEM, "number and names"),
    bad(new(scale_in(), {"toDelete": {"count": NONE}}), ONE_OF_THEM, "neither"),
    bad(new(scale_in(), {"toDelete": {"count": 0}}), ONE_OF_THEM, "zero"),
    bad(new(scale_in(), {"toDelete": {"count": 0, "podNames": []}}), ONE_OF_THEM, "both empty"),
    bad(new(scale_in(), {"selector": NONE}), "spec.selector: Required value", "no job"),
    bad(
        new(scale_out(), {"toAdd": {"count": 0}}),
        "spec.toAdd.count in body should be greater than or equal to 1",
        "none",
    ),
    bad(
        new(scale_out(), {"toAdd": {"minCount": 3}}),
        "spec.toAdd.minCount: Invalid value: must not be more than count",
        "more than all",
    ),
    bad(
        new(scale_out(), {"env": [{"name": "A;rm"}]}),
        "spec.env[0].name in body should match '^[A-Za-z_][A-Za-z0-9_]*$'",
        "variable",
    ),
]


@pytest.mark.parametrize(("wire", "said"), BAD)
async def test_invalid_object_is_rejected_with_the_field_and_the_fix(
    api: Api, wire: JSON, said: str
) -> None:
    await api.define(DEFINITIONS[wire["kind"]])
    answer = await api.post(path(api, wire), wire)
    assert answer.code == 422, answer.body
    assert said in api.failure_text(answer)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(job(), id="job"),
        pytest.param(job(cleanPodPolicy="whatever"), id="word that et-operator took"),
        pytest.param(job({"suspend": True, "runPolicy": {"cleanPodPolicy": "All"}}), id="policies"),
        pytest.param(job(worker={"minReplicas": 2, "maxReplicas": 2}), id="bounds"),
        pytest.param(new(scale_in(script="/a.sh", env=[{"name": "A", "value": "1"}])), id="script"),
        pytest.param(new(scale_in(), {"toDelete": {"count": NONE, "podNames": ["a"]}}), id="names"),
        pytest.param(new(scale_in(), {"toDelete": {"podNames": []}}), id="number, empty names"),
        pytest.param(new(scale_in(), {"toDelete": {"count": 0, "podNames": ["a"]}}), id="names, 0"),
        pytest.param(new(scale_out(timeout=300, backoffLimit=2)), id="scale out"),
    ],
)
async def test_valid_object_is_accepted(api: Api, wire: JSON) -> None:
    await api.define(DEFINITIONS[wire["kind"]])
    answer = await api.post(path(api, wire), wire)
    assert answer.code == 201, answer.body


async def test_workers_are_scaled_by_the_subresource_even_from_the_default(api: Api) -> None:
    await api.define(DEFINITIONS["TrainingJob"])
    wire = job({"etReplicaSpecs": {"worker": {"replicas": NONE, "maxReplicas": 3}}})
    assert (await api.post(path(api, wire), wire)).code == 201
    scale = path(api, wire, "linear", "scale")
    assert (await api.get(scale)).body["spec"] == {"replicas": 1}
    for count, code in ((3, 200), (4, 422)):
        answer = await api.patch(scale, {"spec": {"replicas": count}})
        assert answer.code == code, answer.body


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param({**job(), "spec": {"etReplicaSpecs": {}}}, id="job without replicas"),
        pytest.param({**job(name="m" * 60), "spec": NONE}, id="job without a spec"),
        pytest.param(job(launcherAttachMode="telnet", worker={"maxReplicas": 1}), id="odd job"),
        pytest.param({**new(scale_in()), "spec": {"toDelete": {"count": 0}}}, id="scale in"),
        pytest.param({**new(scale_out()), "spec": NONE}, id="scale out without a spec"),
    ],
)
async def test_status_of_an_object_stored_before_the_rules_can_be_written(
    api: Api, wire: JSON
) -> None:
    strict = definition_of_its_own(api, wire["kind"])
    (version,) = strict["spec"]["versions"]
    lenient = {**strict, "spec": {**strict["spec"], "versions": [{**version, "schema": ANYTHING}]}}
    await api.define(lenient)
    group = f"{strict['spec']['group']}/v1alpha1"
    objects = api.path(strict["spec"]["names"]["plural"], group=group)
    stored = {name: value for name, value in wire.items() if value is not None}
    answer = await api.post(objects, {**stored, "apiVersion": group})
    assert answer.code == 201, answer.body
    name = strict["metadata"]["name"]
    assert (await api.patch(f"{CRDS}/{name}", {"spec": {"versions": [version]}})).code == 200
    await in_effect(api, objects, {**stored, "apiVersion": group})
    status = {"status": {"phase": "Failed", "conditions": [{"type": "Failed", "status": "True"}]}}
    answer = await api.patch(f"{objects}/{wire['metadata']['name']}/status", status)
    assert answer.code == 200, answer.body


def definition_of_its_own(api: Api, kind: str) -> JSON:
    """Return a CRD that no other test uses."""
    wire = DEFINITIONS[kind]
    group = f"{api.namespace}.example.com"
    name = f"{wire['spec']['names']['plural']}.{group}"
    return {**wire, "metadata": {"name": name}, "spec": {**wire["spec"], "group": group}}


async def in_effect(api: Api, objects: str, broken: JSON) -> None:
    """Wait until a new object of that form is rejected."""
    another = {**broken, "metadata": {"name": "another"}}
    for _ in range(500):
        if (await api.post(objects, another, dryRun="All")).code == 422:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the new rules do not hold")

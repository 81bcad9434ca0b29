"""Pod templates in jobs of every kind: nothing is stored that a typed client cannot decode.

Kueue lists whole kinds with such a client: one object that it cannot decode hides all the others.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.builders import (
    KINDS,
    bare_job,
    entry,
    mxjob,
    tfjob_of_tensorflow_org,
    xgboost_operators_job,
)
from tests.contract.api import Api
from tests.contract.jobs import REPLICAS, as_installed, definition_of, job
from tests.contract.kubeflow_jobs import LISTED, OLDER_MAPS, TORCH_LISTED, tf_map, tfjob
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.core_types import undecodable

# A job in each form of each kind.
JOBS = [
    *(job(kind) for kind in REPLICAS),
    LISTED,
    TORCH_LISTED,
    *(
        tfjob(version, {"tfReplicaSpecs": tf_map("Worker")})
        for version in ("v1alpha2", "v1beta1", "v1beta2")
    ),
    *(
        {**job(kind), "apiVersion": f"kubeflow.org/{version}"}
        for kind, versions in OLDER_MAPS.items()
        for version in versions
    ),
    {**job("MPIJob"), "apiVersion": "kubeflow.org/v2beta1"},
    mxjob(),
    mxjob(group="fioravanzo.org"),
    xgboost_operators_job(),
    xgboost_operators_job("v1alpha1"),
    tfjob_of_tensorflow_org(),
    bare_job(),
    bare_job("TFJob", ps=1, worker=1),
    elastic_job(),
]
of_each_form = pytest.mark.parametrize(
    "wire", [pytest.param(each, id=f"{each['kind']} {each['apiVersion']}") for each in JOBS]
)
BAD: dict[str, JSON] = {
    "env[1].value": {"env": [{"name": "A", "value": "a"}, {"name": "B", "value": 5}]},
    "env": {"env": {"A": "b"}},
    "env[0].name": {"env": [{"name": ["x"]}]},
    "command": {"command": "sleep 1"},
    "args[0]": {"args": [0.1]},
    "ports[0].containerPort": {"ports": [{"containerPort": "80"}]},
    "resources.limits.memory": {"resources": {"limits": {"memory": "16GB"}}},
    "resources.requests.cpu": {"resources": {"requests": {"cpu": "two"}}},
    "volumeMounts[0].mountPath": {"volumeMounts": [{"name": "a", "mountPath": []}]},
    "tty": {"tty": "true"},
    "securityContext.runAsUser": {"securityContext": {"runAsUser": "root"}},
    "livenessProbe.periodSeconds": {"livenessProbe": {"periodSeconds": "5"}},
}
BAD_SPECS: dict[str, JSON] = {
    "nodeSelector.gpu": {"nodeSelector": {"gpu": True}},
    "tolerations": {"tolerations": {"key": "gpu"}},
    "volumes[0].emptyDir.sizeLimit": {"volumes": [{"emptyDir": {"sizeLimit": "1GB"}}]},
    "hostNetwork": {"hostNetwork": "yes"},
    "imagePullSecrets[0]": {"imagePullSecrets": ["mine"]},
    "affinity.nodeAffinity": {"affinity": {"nodeAffinity": []}},
    "terminationGracePeriodSeconds": {"terminationGracePeriodSeconds": "30s"},
    "initContainers[0].image": {"initContainers": [{"name": "a", "image": 1}]},
}
BAD_METADATA: dict[str, JSON] = {
    "labels.a": {"labels": {"a": 1}},
    "annotations": {"annotations": ["a"]},
    "finalizers": {"finalizers": True},
    "creationTimestamp": {"creationTimestamp": "2026-01-01 00:00:00"},
    "deletionTimestamp": {"deletionTimestamp": []},
}


def templates(spec: Any) -> Iterator[JSON]:
    """Yield the pod templates of a job in any form."""
    if isinstance(spec, dict):
        if isinstance(spec.get("template"), dict):
            yield spec["template"]
        spec = list(spec.values())
    if isinstance(spec, list):
        for each in spec:
            yield from templates(each)


def changed(wire: JSON, where: str, fields: JSON) -> JSON:
    """Return a job as submitted; its first template has these fields."""
    wire = json.loads(json.dumps({**wire, "metadata": {"name": "a"}}))
    template = next(templates(wire["spec"]))
    places = {
        "container": template["spec"]["containers"][0],
        "spec": template["spec"],
        "metadata": template.setdefault("metadata", {}),
    }
    places[where].update(fields)
    return wire


async def defined(api: Api, wire: JSON) -> str:
    """Return where jobs of this kind and version are, once they are."""
    group = wire["apiVersion"].partition("/")[0]
    kind = next(
        kind for kind in KINDS if (kind.resource.group, kind.resource.kind) == (group, wire["kind"])
    )
    await api.define(as_installed(kind))
    return api.path(kind.resource.plural, group=wire["apiVersion"])


def test_jobs_of_all_versions_are_tried() -> None:
    served = {
        (f"{kind.resource.group}/{version}", kind.resource.kind)
        for kind in KINDS
        for version in kind.dialects
    }
    # Typed clients do not know the one template of MPIJob v1alpha1: it is read when the job runs.
    unknown_to_clients = {("kubeflow.org/v1alpha1", "MPIJob")}
    assert {(wire["apiVersion"], wire["kind"]) for wire in JOBS} == served - unknown_to_clients


@of_each_form
async def test_value_of_another_type_is_rejected_with_its_field(api: Api, wire: JSON) -> None:
    tried = [
        *(("container", field, fields) for field, fields in BAD.items()),
        *(("spec", field, fields) for field, fields in BAD_SPECS.items()),
        *(("metadata", field, fields) for field, fields in BAD_METADATA.items()),
    ]
    path = await defined(api, wire)
    for where, field, fields in tried:
        bad = changed(wire, where, fields)
        assert undecodable(next(templates(bad["spec"]))), field
        answer = await api.post(path, bad)
        assert answer.code == 422, field
        assert f"{field}: Invalid value" in api.failure_text(answer)


@of_each_form
async def test_values_that_kubernetes_accepts_in_pods_are_accepted(api: Api, wire: JSON) -> None:
    limits = {"cpu": 1, "memory": "16Gi", "nvidia.com/gpu": None, "ephemeral-storage": "1e9"}
    fields = {
        "command": [],
        "env": [{"name": "A", "value": None}, {"name": "B"}],
        "resources": {"limits": limits, "requests": None},
        "ports": [{"containerPort": 80, "name": None}],
        "readinessProbe": {"httpGet": {"port": "http"}},
        "livenessProbe": {"httpGet": {"port": 80}},
        "newer": {"field": [None, 1]},
    }
    taken = changed(wire, "container", fields)
    template = next(templates(taken["spec"]))
    template["metadata"] = {"creationTimestamp": None, "labels": {"a": "b"}}
    template["spec"]["nodeSelector"] = {"node.example.com/gpu": None}
    answer = await api.post(await defined(api, wire), taken)
    assert answer.code == 201, answer.body
    stored = next(templates(answer.body["spec"]))
    container = stored["spec"]["containers"][0]
    assert not undecodable(stored)
    assert container["newer"] == {"field": [None, 1]}
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    # In pods it would be empty, too.
    assert stored["spec"]["nodeSelector"] == {"node.example.com/gpu": None}


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(mxjob(servers=5000, workers=5000), id="MXJob"),
        pytest.param(bare_job("TFJob", ps=5000, worker=5001), id="bare list"),
    ],
)
async def test_list_of_too_many_replicas_is_rejected(api: Api, wire: JSON) -> None:
    answer = await api.post(await defined(api, wire), {**wire, "metadata": {"name": "a"}})
    assert answer.code == 422
    assert "a job may have at most 10000 replicas of all types together" in api.failure_text(answer)


async def test_status_of_a_job_stored_without_types_can_be_written(api: Api) -> None:
    group = f"{api.namespace}.dlctl.dev"
    ours = definition_of("PyTorchJob")
    ours["metadata"]["name"] = f"pytorchjobs.{group}"
    ours["spec"]["group"] = group
    before = json.loads(json.dumps(ours))
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = before["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = spec
    del schema["x-kubernetes-validations"], version["subresources"]["scale"]
    await api.define(before)
    bad = {**changed(job("PyTorchJob"), "container", BAD["env"]), "apiVersion": f"{group}/v1"}
    jobs = api.path("pytorchjobs", group=f"{group}/v1")
    assert (await api.post(jobs, bad)).code == 201

    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    change = {"spec": {"versions": ours["spec"]["versions"]}}
    assert (await api.patch(f"{crds}/pytorchjobs.{group}", change)).code == 200
    # It takes effect after a moment.
    while (await api.post(jobs, {**bad, "metadata": {"generateName": "b-"}})).code == 201:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    path = f"{api.path('pytorchjobs', 'a', group=f'{group}/v1')}/status"
    written = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    answer = await api.patch(path, written)
    assert answer.code == 200
    assert answer.body["status"] == written["status"]


async def test_fields_in_any_case_are_stored_unchanged(api: Api) -> None:
    source = {"SecretKeyRef": {"Name": "s", "Key": "k"}}
    container = {"Name": "mxnet", "Image": "x", "env": [{"name": "A", "valueFrom": source}]}
    template = {"spec": {"containers": [container], "NodeSelector": {"a": "b"}}}
    wire = mxjob(replicaSpecs=[entry("SCHEDULER", template=template)])
    answer = await api.post(await defined(api, wire), {**wire, "metadata": {"name": "a"}})
    assert answer.code == 201, answer.body
    assert next(templates(answer.body["spec"])) == template

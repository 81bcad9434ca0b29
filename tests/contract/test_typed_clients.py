"""Kubeflow's list forms decode in the typed clients of v1, or are rejected.

One object that does not decode stops all informers of such clients, for example Kueue's.
"""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.builders import mxjob
from tests.contract.api import Api
from tests.contract.jobs import GROUP, definition_of, plural, refusal
from tests.contract.kubeflow_jobs import LISTED, TORCH_LISTED
from tests.support.typed_clients import undecodable_spec, undecodable_status

FORMS = [
    pytest.param(LISTED, id="TFJob"),
    pytest.param(TORCH_LISTED, id="PyTorchJob"),
    pytest.param({**mxjob(), "metadata": {"name": "a"}}, id="MXJob"),
]
STATUSES: dict[str, Any] = {
    "list of counts": {"replicaStatuses": [{"tf_replica_type": "PS"}]},
    "counts that are none": {"replicaStatuses": {"PS": 3}},
    "count in words": {"replicaStatuses": {"PS": {"active": "two"}}},
    "conditions that are a map": {"conditions": {"type": "Running", "status": "True"}},
    "condition that is a word": {"conditions": ["Running"]},
    "selector of replicas that is a word": {"replicaStatuses": {"PS": {"labelSelector": "a=b"}}},
    "labels of a selector": {
        "replicaStatuses": {"PS": {"labelSelector": {"matchLabels": {"a": 1}}}}
    },
    "condition that holds": {"conditions": [{"type": "Running", "status": True}]},
    "message that is a number": {"conditions": [{"type": "A", "status": "True", "message": 3}]},
    "time that is a number": {"startTime": 1767268800},
    "time that is a list": {"startTime": []},
    "time that is a list of times": {"completionTime": ["2026-01-01T12:00:00Z"]},
    "time without a zone": {"completionTime": "2026-01-01T12:00:00"},
    "time in no zone of the earth": {"startTime": "2026-01-01T12:00:00+25:00"},
    "time of a condition": {
        "conditions": [{"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00"}]
    },
}
SPECS: dict[str, Any] = {
    "replica specs of v1": {
        "tfReplicaSpecs": {"Worker": 3},
        "mxReplicaSpecs": {"Worker": 3},
        "pytorchReplicaSpecs": {"Worker": 3},
    },
    "replica specs that are a list": {
        "tfReplicaSpecs": [],
        "mxReplicaSpecs": [],
        "pytorchReplicaSpecs": [],
    },
    "elasticity in words": {"elasticPolicy": {"maxReplicas": "many"}},
    "processes by number": {"nprocPerNode": 2},
    "policy that is a word": {"runPolicy": "All"},
    "limit in words": {"runPolicy": {"backoffLimit": "two"}},
    "scheduling that is a word": {"runPolicy": {"schedulingPolicy": "gang"}},
    "members in words": {"runPolicy": {"schedulingPolicy": {"minAvailable": "all"}}},
    "manager that is a number": {"runPolicy": {"managedBy": 3}},
    "success by number": {"successPolicy": 3},
    "mode by number": {"jobMode": 3},
    "workers that come in words": {"enableDynamicWorker": "yes"},
}


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
@pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
@pytest.mark.parametrize("wire", FORMS)
async def test_status_that_typed_clients_cannot_decode_is_rejected(
    api: Api, wire: JSON, status: JSON, version: str
) -> None:
    assert undecodable_status(status)
    kind = wire["kind"]
    await api.define(definition_of(kind))
    assert await refusal(api, wire) == ""
    path = f"{api.path(plural(kind), 'a', group=f'kubeflow.org/{version}')}/status"
    assert (await api.patch(path, {"status": status})).code == 422


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("wire", FORMS)
async def test_spec_is_rejected_or_decodes_in_typed_clients(
    api: Api, wire: JSON, spec: JSON
) -> None:
    kind = wire["kind"]
    await api.define(definition_of(kind))
    if await refusal(api, {**wire, "spec": {**wire["spec"], **spec}}):
        return
    stored = (await api.get(api.path(plural(kind), "a", group=GROUP))).body
    assert undecodable_spec(stored["spec"], kind) == ""


# A real server is slow to apply changes of large CRDs.
@pytest.mark.timeout(120)
@pytest.mark.parametrize("wire", FORMS)
async def test_stored_list_is_replaced_by_the_map(api: Api, wire: JSON) -> None:
    # Its own CRD, which can change: others use the real one meanwhile.
    group, name = f"{api.namespace}.dlctl.dev", plural(wire["kind"])
    ours, before = definition_of(wire["kind"]), definition_of(wire["kind"])
    for crd in (ours, before):
        crd["metadata"]["name"] = f"{name}.{group}"
        crd["spec"]["group"] = group
    for version in before["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        status["properties"]["replicaStatuses"] = {"x-kubernetes-preserve-unknown-fields": True}
        # No scale subresource then, for which a server would validate the status.
        version["subresources"].pop("scale", None)
    await api.define(before)
    assert await refusal(api, {**wire, "apiVersion": f"{group}/v1alpha1"}) == ""
    path = f"{api.path(name, 'a', group=f'{group}/v1')}/status"
    listed = {"status": {"replicaStatuses": [{"tf_replica_type": "PS"}]}}
    answer = await api.patch(path, listed)
    assert answer.code == 200, answer.body["message"]
    crd_path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.{group}"
    change = {"spec": {"versions": ours["spec"]["versions"]}}
    assert (await api.patch(crd_path, change)).code == 200

    mapped = {"status": {"replicaStatuses": {"PS": {"active": 1}}}}
    answer = await api.patch(path, mapped)
    assert answer.code == 200, answer.body["message"]
    assert answer.body["status"] == mapped["status"]

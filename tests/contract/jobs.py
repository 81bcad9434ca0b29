"""Kubeflow's jobs for the contract tests: valid ones, and changes that make them invalid."""

import json
from collections.abc import Mapping
from typing import Any

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import job_crd
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from tests.builders import kind_of, training_job
from tests.contract.api import Api

GROUP = "kubeflow.org/v1"
# The replicas of a valid job of each kind.
REPLICAS: Mapping[str, Mapping[str, int]] = {
    "TFJob": {"Worker": 2},
    "PyTorchJob": {"Master": 1, "Worker": 2},
    "XGBoostJob": {"Master": 1, "Worker": 2},
    "PaddleJob": {"Worker": 2},
    "JAXJob": {"Worker": 2},
    "MPIJob": {"Launcher": 1, "Worker": 2},
    "MXJob": {"Scheduler": 1, "Server": 1, "Worker": 2},
}


def definition_of(kind: str) -> JSON:
    return as_installed(kind_of(GROUP, kind))


def as_installed(kind: Kind) -> JSON:
    """Return the CRD of a kind, serialized, so that no part is shared."""
    wire: JSON = json.loads(json.dumps(job_crd(kind)))
    return wire


def plural(kind: str) -> str:
    return f"{kind.lower()}s"


def job(
    kind: str, change: JSON | None = None, counts: Mapping[str, int] | None = None, name: str = "a"
) -> JSON:
    """Return a valid job with a merge patch applied to its spec."""
    wire = training_job(kind, name, **(counts or REPLICAS[kind]))
    spec = merged(wire["spec"], change or {})
    return {**wire, "metadata": {"name": name}, "spec": spec}


def replicas(kind: str, type_: str, change: Any) -> JSON:
    """Return a change of the replicas of one type."""
    dialect = kind_of(GROUP, kind).dialects["v1"]
    assert isinstance(dialect, ReplicaMap)
    return {dialect.kind.replica_specs_field: {type_: change}}


def policy(**fields: Any) -> JSON:
    return {"runPolicy": fields}


def scheduling(**fields: Any) -> JSON:
    return policy(schedulingPolicy=fields)


def elastic(**fields: Any) -> JSON:
    return {"elasticPolicy": fields}


def merged(target: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


async def refusal(api: Api, wire: JSON) -> str:
    """Return why a server rejects a job, or an empty string if it accepts it."""
    answer = await api.post(api.path(plural(wire["kind"]), group=wire["apiVersion"]), wire)
    if answer.code == 201:
        return ""
    assert answer.code == 422, answer.body
    return api.failure_text(answer).partition(" is invalid: ")[2]

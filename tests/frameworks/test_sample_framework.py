"""A framework in a package of its own gets all there is, without a line in dlctl.

Its kind, CRD, validation and children come from a class of a few lines.
"""

import inspect
from pathlib import Path
from typing import Any

import pytest

from dlctl.api.job import Job, Replica
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import job_crd
from dlctl.dialects.kinds import kind_of_api_version, served_kinds
from dlctl.dialects.rbac import cluster_role
from dlctl.errors import InvalidJobError
from dlctl.frameworks.registry import load_frameworks
from dlctl.reconcilers.children.renderer import Renderer
from tests.builders import bare_job, job_object


@pytest.fixture
def kind(sample_framework: Path) -> Kind:
    found = kind_of_api_version(
        served_kinds(load_frameworks().frameworks), "mpba.fbk.eu/v1", "RingJob"
    )
    assert found is not None
    return found


def ring(kind: Kind, **counts: int) -> Job:
    wire = bare_job("RingJob", **(counts or {"master": 1, "worker": 2}))
    return kind.read(kind.decode(job_object(wire)))


def environment(kind: Kind, job: Job, replica: Replica) -> dict[str, str]:
    (container,) = pod(kind, job, replica)["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def pod(kind: Kind, job: Job, replica: Replica) -> dict[str, Any]:
    return Renderer(job, kind.dialects["v1"]).pod(replica)


def test_its_class_has_at_most_twenty_lines(kind: Kind) -> None:
    assert len(inspect.getsource(kind.dialects["v1"].framework).splitlines()) <= 20


def test_it_is_served_in_the_open_group(kind: Kind) -> None:
    assert kind.resource.group_resource == "ringjobs.mpba.fbk.eu"
    assert kind.resource.api_version == "mpba.fbk.eu/v1"
    assert kind.dialects["v1"].framework.__module__ == "ring_dlctl"


def test_its_crd_names_its_replica_types(kind: Kind) -> None:
    definition = job_crd(kind)
    assert definition["metadata"]["name"] == "ringjobs.mpba.fbk.eu"
    assert "['master', 'worker']" in str(definition)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        pytest.param({"worker": 1}, "MASTER", id="no master"),
        pytest.param({"master": 2}, "exactly 1 MASTER", id="two masters"),
        pytest.param({"master": 1, "server": 1}, "'SERVER'.*MASTER, WORKER", id="unknown type"),
    ],
)
def test_its_jobs_are_validated(kind: Kind, counts: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidJobError, match=said):
        ring(kind, **counts)


def test_its_master_decides_the_job(kind: Kind) -> None:
    assert ring(kind).success_policy.success_replicas[0] == Replica("master", 0)


def test_its_pods_get_its_environment(kind: Kind) -> None:
    job = ring(kind)
    assert environment(kind, job, Replica("worker", 1)) == {
        "RING_MASTER": f"{job.child_name(Replica('master', 0))}:7000",
        "RING_RANK": "2",
        "RING_SIZE": "3",
    }


def test_its_pods_get_the_volumes_it_asks_for(kind: Kind) -> None:
    spec = pod(kind, ring(kind), Replica("master", 0))["spec"]
    (volume,) = spec["volumes"]
    assert volume["emptyDir"] == {}
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "mountPath": "/scratch"}
    ]


def test_its_replicas_have_services(kind: Kind) -> None:
    job = ring(kind)
    renderer = Renderer(job, kind.dialects["v1"])
    assert list(renderer.replicas_with_service()) == list(job.replicas)
    ports = renderer.service(Replica("worker", 0))["spec"]["ports"]
    assert [port["port"] for port in ports] == [7000]


def test_role_covers_the_dependents_of_its_jobs(sample_framework: Path) -> None:
    rules = cluster_role(served_kinds(load_frameworks().frameworks))["rules"]
    granted = {resource: rule["verbs"] for rule in rules for resource in rule["resources"]}
    assert granted["ringjobs"] == ["list", "watch"]
    assert granted["ringjobs/status"] == ["patch"]

"""The dependents of elastic jobs."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from dlctl.api.meta import CONFIG_MAPS, ROLES, Resource
from dlctl.api.policies.elasticity import AttachMode
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.errors import InvalidJobError
from dlctl.frameworks.class_validation import invalid_reason
from dlctl.frameworks.horovod.job import SERVICE_PORTS, TrainingJob
from tests.frameworks.horovod.builders import elastic, pod

LOOKING = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
READING = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["et-config"],
    "verbs": ["get"],
}


def body(framework: TrainingJob, resource: Resource) -> dict[str, Any]:
    (found,) = [one for one in framework.dependents(()) if one.resource == resource]
    return dict(found.body)


def exec_pods(framework: TrainingJob) -> list[str]:
    """Return the pods into which the launcher can exec."""
    rules = body(framework, ROLES)["rules"]
    return [name for rule in rules if rule["verbs"] == ["create"] for name in rule["resourceNames"]]


def test_class_is_a_framework() -> None:
    assert invalid_reason(TrainingJob) == ""
    assert TrainingJob.default_port() == SERVICE_PORTS["ssh-port"] == 22
    assert SERVICE_PORTS["kubeai-service-port"] == 9009


def test_dependents_of_a_launcher_are_in_a_valid_order() -> None:
    dependents = list(elastic().dependents(()))
    assert [(one.resource.kind, one.name) for one in dependents] == [
        ("Role", "et-launcher"),
        ("ServiceAccount", "et-launcher"),
        ("RoleBinding", "et-launcher"),
        ("ConfigMap", "et-config"),
    ]
    assert [one.resource for one in dependents] == list(TrainingJob.dependent_resources)
    assert all(one.body["metadata"] == {"labels": {"app": "et"}} for one in dependents)
    binding = dependents[2].body
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "et-launcher", "namespace": "ml"}
    ]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "et-launcher",
    }


def test_ssh_launcher_may_exec_in_no_pod() -> None:
    assert body(elastic(), ROLES)["rules"] == [LOOKING, READING]


def test_kubexec_launcher_may_exec_in_its_workers_only() -> None:
    assert body(elastic(attach=AttachMode.KUBEXEC), ROLES)["rules"] == [
        LOOKING,
        {
            "apiGroups": [""],
            "resources": ["pods/exec"],
            "verbs": ["create"],
            "resourceNames": ["et-worker-0", "et-worker-1"],
        },
        READING,
    ]


def test_exec_is_allowed_from_before_a_worker_starts_until_it_is_gone() -> None:
    scaling = ScaleOperation(
        is_scale_out=True, workers=(4, 10), since=datetime(2026, 1, 1, tzinfo=UTC)
    )
    membership = Membership(members=(0, 2), hosts=(0, 1), scaling=scaling)
    assert exec_pods(elastic(attach=AttachMode.KUBEXEC, membership=membership)) == [
        "et-worker-0",
        "et-worker-1",
        "et-worker-2",
        "et-worker-4",
        "et-worker-10",
    ]


def test_without_workers_exec_is_allowed_in_no_pod() -> None:
    membership = Membership()
    assert body(elastic(attach=AttachMode.KUBEXEC, membership=membership), ROLES)["rules"] == [
        LOOKING,
        READING,
    ]


def test_rules_of_roles_are_delegated_by_the_controller() -> None:
    rules = body(elastic(attach=AttachMode.KUBEXEC), ROLES)["rules"]
    handed = {
        ("", resource, verb) for r in rules for resource in r["resources"] for verb in r["verbs"]
    }
    # The controller can read ConfigMaps like all dependents.
    assert handed - {("", "configmaps", "get")} == set(TrainingJob.delegated_rules)
    assert CONFIG_MAPS in TrainingJob.dependent_resources


def test_hosts_are_those_of_the_membership_sorted_by_index() -> None:
    membership = Membership(members=(0, 2, 10, 11), hosts=(10, 2, 0))
    data = body(elastic(membership=membership, slotsPerWorker=2), CONFIG_MAPS)["data"]
    assert data["hostfile"] == "et-worker-0:2\net-worker-2:2\net-worker-10:2\n"
    assert data["deepspeed-hostfile"] == (
        "et-worker-0 slots=2\net-worker-2 slots=2\net-worker-10 slots=2\n"
    )


@pytest.mark.parametrize("membership", [None, Membership(members=(0, 1))])
def test_without_hosts_the_lists_are_empty(membership: Membership | None) -> None:
    data = body(elastic(membership=membership), CONFIG_MAPS)["data"]
    assert sorted(data) == ["deepspeed-hostfile", "discover_hosts.sh", "hostfile", "kubexec.sh"]
    assert (data["hostfile"], data["deepspeed-hostfile"]) == ("", "")


def test_host_files_are_keyed_by_their_paths() -> None:
    framework = elastic(membership=Membership(members=(0, 1), hosts=(1,)))
    assert framework.host_files() == {
        "/etc/edl/hostfile": "et-worker-1:1\n",
        "/job/hostfile": "et-worker-1 slots=1\n",
    }


@pytest.mark.parametrize(
    ("resources", "slots"),
    [
        (None, 1),
        ({"limits": {"nvidia.com/gpu": "4"}}, 4),
        ({"limits": {"nvidia.com/gpu": 2}}, 2),
        ({"limits": {"nvidia.com/gpu": "0"}}, 1),
        ({"limits": {"cpu": "4"}}, 1),
        ({"requests": {"nvidia.com/gpu": "4"}}, 1),
        ({"limits": {"nvidia.com/gpu": None}}, 1),
        ({"limits": {"nvidia.com/gpu": "1k"}}, 1),
        ({"limits": {"nvidia.com/gpu": "9" * 10}}, 1),
    ],
)
def test_slots_are_the_gpus_of_the_first_container(resources: Any, slots: int) -> None:
    worker = pod("main", "other")
    worker["containers"][0]["resources"] = resources
    worker["containers"][1]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    assert elastic(worker=worker).slots == slots
    assert elastic(worker=worker, slotsPerWorker=3).slots == 3


@pytest.mark.parametrize("slots", ["1", "1; reboot", True, 0, -1, 1.5])
def test_non_numeric_slots_are_rejected(slots: Any) -> None:
    with pytest.raises(InvalidJobError, match=r"spec\.slotsPerWorker: must be an integer"):
        list(elastic(slotsPerWorker=slots).dependents(()))


def test_ssh_keys_are_created_once_per_job_object() -> None:
    (secret,) = elastic().secrets()
    assert (secret.resource.kind, secret.name, secret.body["type"]) == ("Secret", "et", "Opaque")
    data = {name: base64.b64decode(text) for name, text in secret.body["data"].items()}
    assert list(data) == ["id_rsa", "id_rsa.pub", "config"]
    assert data["id_rsa.pub"].endswith(b" ml/et\n")
    assert TrainingJob.creates_secrets
    assert "metadata" not in secret.body


def test_unused_keys_are_not_created() -> None:
    assert not list(elastic(attach=AttachMode.KUBEXEC).secrets())
    named = elastic(annotations={"arena.kubeflow.org/ssh-secret": "mine"})
    assert not list(named.secrets())
    # Nothing is named by it.
    assert list(elastic(annotations={"arena.kubeflow.org/ssh-secret": ""}).secrets())


def test_environment_is_only_the_users() -> None:
    framework = elastic()
    assert all(not framework.get_environment_variables(s, 0) for s in framework.job.replica_specs)

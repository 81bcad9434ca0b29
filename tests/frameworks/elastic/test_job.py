"""What elastic jobs have beside pods and services."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from dlctl.api.elastic import AttachMode, Roster, Scaling
from dlctl.api.meta import CONFIG_MAPS, ROLES, Resource
from dlctl.errors import InvalidJobError
from dlctl.frameworks.contract import flaw
from dlctl.frameworks.elastic.job import SERVICE_PORTS, TrainingJob
from tests.frameworks.elastic.builders import elastic, pod

LOOKING = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
READING = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["et-config"],
    "verbs": ["get"],
}


def body(framework: TrainingJob, resource: Resource) -> dict[str, Any]:
    (found,) = [one for one in framework.companions(()) if one.resource == resource]
    return dict(found.body)


def entered(framework: TrainingJob) -> list[str]:
    """Return the pods that the launcher may run programs in."""
    rules = body(framework, ROLES)["rules"]
    return [name for rule in rules if rule["verbs"] == ["create"] for name in rule["resourceNames"]]


def test_class_is_a_framework() -> None:
    assert flaw(TrainingJob) == ""
    assert TrainingJob.default_port() == SERVICE_PORTS["ssh-port"] == 22
    assert SERVICE_PORTS["kubeai-service-port"] == 9009


def test_everything_is_made_that_a_launcher_needs_in_an_order_that_works() -> None:
    companions = list(elastic().companions(()))
    assert [(one.resource.kind, one.name) for one in companions] == [
        ("Role", "et-launcher"),
        ("ServiceAccount", "et-launcher"),
        ("RoleBinding", "et-launcher"),
        ("ConfigMap", "et-config"),
    ]
    assert [one.resource for one in companions] == list(TrainingJob.companion_resources)
    assert all(one.body["metadata"] == {"labels": {"app": "et"}} for one in companions)
    binding = companions[2].body
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "et-launcher", "namespace": "ml"}
    ]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "et-launcher",
    }


def test_launcher_that_uses_ssh_may_enter_no_pod() -> None:
    assert body(elastic(), ROLES)["rules"] == [LOOKING, READING]


def test_launcher_that_uses_kubectl_may_enter_its_workers_alone() -> None:
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


def test_workers_may_be_entered_from_when_they_are_to_come_until_they_are_gone() -> None:
    scaling = Scaling(adds=True, workers=(4, 10), since=datetime(2026, 1, 1, tzinfo=UTC))
    roster = Roster(members=(0, 2), hosts=(0, 1), scaling=scaling)
    assert entered(elastic(attach=AttachMode.KUBEXEC, roster=roster)) == [
        "et-worker-0",
        "et-worker-1",
        "et-worker-2",
        "et-worker-4",
        "et-worker-10",
    ]


def test_no_worker_at_all_is_no_right_to_enter_any_pod() -> None:
    roster = Roster()
    assert body(elastic(attach=AttachMode.KUBEXEC, roster=roster), ROLES)["rules"] == [
        LOOKING,
        READING,
    ]


def test_rights_of_roles_are_the_controllers_to_hand_on() -> None:
    rules = body(elastic(attach=AttachMode.KUBEXEC), ROLES)["rules"]
    handed = {
        ("", resource, verb) for r in rules for resource in r["resources"] for verb in r["verbs"]
    }
    # As with all companions, the controller reads ConfigMaps itself.
    assert handed - {("", "configmaps", "get")} == set(TrainingJob.granted)
    assert CONFIG_MAPS in TrainingJob.companion_resources


def test_hosts_are_those_of_the_roster_in_the_order_of_their_indexes() -> None:
    roster = Roster(members=(0, 2, 10, 11), hosts=(10, 2, 0))
    data = body(elastic(roster=roster, slotsPerWorker=2), CONFIG_MAPS)["data"]
    assert data["hostfile"] == "et-worker-0:2\net-worker-2:2\net-worker-10:2\n"
    assert data["deepspeed-hostfile"] == (
        "et-worker-0 slots=2\net-worker-2 slots=2\net-worker-10 slots=2\n"
    )


@pytest.mark.parametrize("roster", [None, Roster(members=(0, 1))])
def test_without_hosts_the_lists_are_empty(roster: Roster | None) -> None:
    data = body(elastic(roster=roster), CONFIG_MAPS)["data"]
    assert sorted(data) == ["deepspeed-hostfile", "discover_hosts.sh", "hostfile", "kubexec.sh"]
    assert (data["hostfile"], data["deepspeed-hostfile"]) == ("", "")


def test_copies_in_the_launcher_are_told_by_their_paths() -> None:
    framework = elastic(roster=Roster(members=(0, 1), hosts=(1,)))
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
    ],
)
def test_slots_are_the_gpus_of_the_first_container(resources: Any, slots: int) -> None:
    worker = pod("main", "other")
    worker["containers"][0]["resources"] = resources
    worker["containers"][1]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    assert elastic(worker=worker).slots == slots
    assert elastic(worker=worker, slotsPerWorker=3).slots == 3


@pytest.mark.parametrize("slots", ["1", "1; reboot", True, 0, -1, 1.5])
def test_slots_that_are_no_number_are_refused(slots: Any) -> None:
    with pytest.raises(InvalidJobError, match=r"spec\.slotsPerWorker: must be an integer"):
        list(elastic(slotsPerWorker=slots).companions(()))


def test_keys_are_made_once_for_the_job_alone() -> None:
    (secret,) = elastic().secrets()
    assert (secret.resource.kind, secret.name, secret.body["type"]) == ("Secret", "et", "Opaque")
    data = {name: base64.b64decode(text) for name, text in secret.body["data"].items()}
    assert list(data) == ["id_rsa", "id_rsa.pub", "config"]
    assert data["id_rsa.pub"].endswith(b" ml/et\n")
    assert TrainingJob.keeps_secrets
    assert "metadata" not in secret.body


def test_no_keys_are_made_where_none_are_used() -> None:
    assert not list(elastic(attach=AttachMode.KUBEXEC).secrets())
    named = elastic(annotations={"arena.kubeflow.org/ssh-secret": "mine"})
    assert not list(named.secrets())
    # Nothing is named by it.
    assert list(elastic(annotations={"arena.kubeflow.org/ssh-secret": ""}).secrets())


def test_environment_is_the_users_alone() -> None:
    framework = elastic()
    assert all(not framework.get_environment_variables(s, 0) for s in framework.job.replica_specs)

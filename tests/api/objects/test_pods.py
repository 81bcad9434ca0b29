"""The projections of pods and metadata, fed with what API servers and old kubelets send."""

import datetime
from typing import Any

import msgspec
import pytest

from dlctl.api.meta import Object, OwnerReference
from dlctl.api.objects.pods import Pod, PodPhase


def pod(wire: dict[str, Any]) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(wire), type=Pod)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="null status"),
        pytest.param({}, id="empty status"),
        pytest.param({"phase": None}, id="null phase"),
        pytest.param({"phase": ""}, id="empty phase"),
    ],
)
def test_pod_without_status_is_pending(status: dict[str, Any] | None) -> None:
    assert pod({"metadata": {"name": "a"}, "status": status}).phase is PodPhase.PENDING


def test_unrecognized_phase_is_unknown() -> None:
    assert pod({"status": {"phase": "Hibernating"}}).phase is PodPhase.UNKNOWN


def test_null_lists_hold_no_container_and_no_condition() -> None:
    seen = pod({"status": {"containerStatuses": None, "conditions": None}})
    assert seen.container_status("mxnet") is None
    assert seen.condition("Ready") is None


def test_container_and_condition_are_found_by_name() -> None:
    seen = pod(
        {
            "status": {
                "containerStatuses": [{"name": "sidecar"}, {"name": "mxnet", "restartCount": 3}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        }
    )
    container, condition = seen.container_status("mxnet"), seen.condition("Ready")
    assert container is not None
    assert container.restart_count == 3
    assert condition is not None
    assert condition.status == "True"


def test_unknown_and_null_fields_are_ignored() -> None:
    seen = pod(
        {
            "apiVersion": "v1",
            "metadata": {"name": "a", "creationTimestamp": None, "managedFields": [{"x": 1}]},
            "spec": {"containers": [], "nodeName": None, "quantumBits": 7},
            "status": {
                "podIP": None,
                "hostIPs": [{"ip": "10.0.0.1"}],
                "containerStatuses": [
                    {
                        "name": "mxnet",
                        "restartCount": None,
                        "state": {"waiting": None},
                        "lastState": {},
                    }
                ],
            },
        }
    )
    container = seen.container_status("mxnet")
    assert container is not None
    assert container.state is not None
    assert container.state.waiting is None


def test_pod_ip_keeps_its_irregular_spelling() -> None:
    seen = pod({"status": {"podIP": "10.1.2.3"}})
    assert seen.status is not None
    assert seen.status.pod_ip == "10.1.2.3"


def test_deletion_was_requested_a_grace_period_before_its_deadline() -> None:
    seen = pod(
        {
            "metadata": {
                "deletionTimestamp": "2026-01-01T12:00:30Z",
                "deletionGracePeriodSeconds": 30,
            }
        }
    )
    assert seen.metadata.is_terminating
    assert seen.metadata.deletion_requested_at == datetime.datetime(
        2026, 1, 1, 12, tzinfo=datetime.UTC
    )


@pytest.mark.parametrize("grace_s", [10**10, 9 * 10**18])
def test_deletion_with_a_period_that_the_server_cannot_add_was_requested_after_creation(
    grace_s: int,
) -> None:
    metadata = {
        "creationTimestamp": "2026-01-01T12:00:00Z",
        "deletionTimestamp": "2148-10-27T12:40:19Z",
        "deletionGracePeriodSeconds": grace_s,
    }
    created = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    assert pod({"metadata": metadata}).metadata.deletion_requested_at == created


def test_pod_that_is_not_being_deleted_has_no_time_of_deletion() -> None:
    assert pod({"metadata": {"name": "a"}}).metadata.deletion_requested_at is None


def test_controller_is_the_owner_reference_marked_as_such() -> None:
    references = [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
        {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "uid": "2", "controller": True},
    ]
    seen = msgspec.json.decode(
        msgspec.json.encode({"metadata": {"ownerReferences": references}}), type=Object
    )
    controller = seen.metadata.controller
    assert isinstance(controller, OwnerReference)
    assert (controller.uid, controller.group) == ("2", "kubeflow.org")

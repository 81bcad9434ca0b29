"""Tables: the cells that kubectl prints."""

import datetime
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver.builtins import strategies
from dlctl.local.apiserver.printing.jsonpath import JSONPathError, find
from dlctl.local.apiserver.printing.pod_rows import pod_cells
from dlctl.local.apiserver.printing.tables import table
from dlctl.local.apiserver.resources import Column, ResourceRegistry, ServedResource
from tests.local.apiserver.strategies import Anything

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
BEFORE = "2026-01-01T11:58:59Z"


def make_pod(*statuses: JSON, init: tuple[JSON, ...] = (), **status: Any) -> JSON:
    """Return a pod with one container for each status."""
    return {
        "metadata": {"name": "p", "creationTimestamp": BEFORE},
        "spec": {
            "containers": [{"name": str(i)} for i, _ in enumerate(statuses)],
            "initContainers": [{"name": f"i{i}"} for i, _ in enumerate(init)],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init),
            **status,
        },
    }


def running(*, ready: bool = True, restarts: int = 0) -> JSON:
    return {"ready": ready, "restartCount": restarts, "state": {"running": {}}}


def waiting(reason: str, restarts: int = 0) -> JSON:
    return {"ready": False, "restartCount": restarts, "state": {"waiting": {"reason": reason}}}


def ended(code: int, reason: str = "", restarts: int = 0) -> JSON:
    terminated = {"exitCode": code, "reason": reason}
    return {"ready": False, "restartCount": restarts, "state": {"terminated": terminated}}


@pytest.mark.parametrize(
    ("pod", "cells"),
    [
        pytest.param(make_pod(running()), ("1/1", "Running", "0"), id="running"),
        pytest.param(make_pod(running(), running(ready=False)), ("1/2", "Running", "0"), id="half"),
        pytest.param(make_pod(phase="Pending"), ("0/0", "Pending", "0"), id="pending"),
        pytest.param(
            make_pod(waiting("CrashLoopBackOff", 3)), ("0/1", "CrashLoopBackOff", "3"), id="crash"
        ),
        pytest.param(
            make_pod(ended(0, "Completed"), phase="Succeeded"), ("0/1", "Completed", "0"), id="done"
        ),
        pytest.param(make_pod(ended(137), phase="Failed"), ("0/1", "ExitCode:137", "0"), id="code"),
        pytest.param(
            make_pod(ended(0, "Completed"), running()), ("1/2", "NotReady", "0"), id="one is done"
        ),
        pytest.param(
            make_pod(phase="Failed", reason="Evicted"), ("0/0", "Evicted", "0"), id="evicted"
        ),
        pytest.param(
            make_pod(waiting("PodInitializing"), init=(ended(0), waiting("PodInitializing"))),
            ("0/1", "Init:1/2", "0"),
            id="initializing",
        ),
        pytest.param(
            make_pod(waiting("PodInitializing"), init=(ended(1, "Error", 2),)),
            ("0/1", "Init:Error", "2"),
            id="init failed",
        ),
    ],
)
def test_pod_columns_are_those_of_kubectl(pod: JSON, cells: tuple[str, str, str]) -> None:
    row = pod_cells(pod, NOW)

    assert (row["Ready"], row["Status"], row["Restarts"]) == cells


def test_deleted_pod_is_terminating_unless_it_has_ended() -> None:
    pod = make_pod(running())
    pod["metadata"]["deletionTimestamp"] = BEFORE
    done = make_pod(ended(0, "Completed"), phase="Succeeded")
    done["metadata"]["deletionTimestamp"] = BEFORE

    assert pod_cells(pod, NOW)["Status"] == "Terminating"
    assert pod_cells(done, NOW)["Status"] == "Completed"


def test_restarts_say_how_long_ago_the_last_one_was() -> None:
    status = running(restarts=2)
    status["lastState"] = {"terminated": {"finishedAt": BEFORE}}

    assert pod_cells(make_pod(status), NOW)["Restarts"] == "2 (61s ago)"


def custom(*columns: Column) -> ServedResource:
    resource = Resource("test.io", "v1", "gadgets", "Gadget")
    return ServedResource(resource, "gadget", Anything(), columns=columns)


def test_columns_of_custom_resources_are_paths() -> None:
    served = custom(
        Column("Size", ".spec.size", "integer"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("List", ".spec.list"),
        Column("Missing", ".spec.missing"),
        Column("Wrong", ".spec.name", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    )
    obj = {
        "metadata": {"name": "a", "creationTimestamp": BEFORE},
        "spec": {"size": 3, "list": [1, "b"], "name": "x"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }

    (row,) = table(served, [obj], now=NOW)["rows"]

    assert row["cells"] == ["a", 3, "True", '[1,"b"]', None, None, "61s"]


def test_custom_resource_without_columns_has_name_and_age() -> None:
    shown = table(custom(), [], now=NOW)

    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Age"]
    assert shown["rows"] == []


def test_rows_include_the_requested_objects() -> None:
    obj = {"kind": "Gadget", "metadata": {"name": "a"}, "spec": {}}

    rows = {
        include: table(custom(), [obj], include, now=NOW)["rows"][0].get("object")
        for include in ("None", "Metadata", "Object")
    }

    assert rows == {
        "None": None,
        "Metadata": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "a"},
        },
        "Object": obj,
    }


def test_claim_shows_its_volume_once_it_is_bound() -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "a", "creationTimestamp": BEFORE}
    pending = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
    state = {
        "phase": "Bound",
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
    }
    volume = {"volumeName": "v", "storageClassName": "fast"}
    bound = {"metadata": meta, "spec": {**spec, **volume}, "status": state}
    registry = ResourceRegistry()
    strategies.register(registry)
    served = registry.find("", "v1", "persistentvolumeclaims")
    assert served is not None

    rows = [row["cells"][:-1] for row in table(served, [pending, bound], now=NOW)["rows"]]

    assert rows == [
        ["a", "Pending", "", "", "", "", "<unset>", "61s"],
        ["a", "Bound", "v", "1Gi", "RWX", "fast", "<unset>", "61s"],
    ]


def test_rows_of_ended_pods_are_marked() -> None:
    registry = ResourceRegistry()
    strategies.register(registry)
    served = registry.find("", "v1", "pods")
    assert served is not None

    rows = table(served, [make_pod(phase="Succeeded"), make_pod()], now=NOW)["rows"]

    assert [row.get("conditions", [{}])[0].get("reason") for row in rows] == ["Succeeded", None]


def test_events_have_their_name_last() -> None:
    registry = ResourceRegistry()
    strategies.register(registry)
    served = registry.find("", "v1", "events")
    assert served is not None
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "Started",
        "type": "Normal",
        "message": "Started it\n",
        "lastTimestamp": BEFORE,
        "count": 3,
        "source": {"component": "kubelet", "host": "n"},
    }

    shown = table(served, [event], now=NOW)

    assert shown["columnDefinitions"][0]["name"] == "Last Seen"
    assert shown["rows"][0]["cells"] == [
        "61s",
        "Normal",
        "Started",
        "pod/p",
        "",
        "kubelet, n",
        "Started it",
        "<unknown>",
        3,
        "e",
    ]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".a.b", [1]),
        pytest.param("{.a.b}", [1]),
        pytest.param(".list[0].n", ["x"]),
        pytest.param(".list[-1].n", ["y"]),
        pytest.param(".list[*].n", ["x", "y"]),
        pytest.param('.list[?(@.n=="y")].v', [2]),
        pytest.param(r".a.dotted\.key", [3]),
        pytest.param(".a['dotted.key']", [3]),
        pytest.param("..v", [1, 2]),
        pytest.param(".nothing.here", []),
    ],
)
def test_path_finds_what_it_names(path: str, found: list[Any]) -> None:
    value = {"a": {"b": 1, "dotted.key": 3}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]}

    assert find(value, path) == found


def test_malformed_path_is_an_error() -> None:
    with pytest.raises(JSONPathError):
        find({}, ".a[")

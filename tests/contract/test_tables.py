"""Tables: the columns and cells that kubectl prints."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget
from tests.contract.objects import config_map, pod, service

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def columns(table: JSON) -> list[tuple[str, str, str, int]]:
    return [
        (each["name"], each["type"], each["format"], each["priority"])
        for each in table["columnDefinitions"]
    ]


@pytest.fixture
async def gadgets(gadget_api: Api) -> str:
    path = gadget_api.path("gadgets", group=V1)
    await gadget_api.create(path, gadget())
    return path


async def test_table_of_a_custom_resource_has_its_columns(gadget_api: Api, gadgets: str) -> None:
    table = (await gadget_api.get(gadgets, accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == [
        ("Name", "string", "name", 0),
        ("Size", "integer", "", 0),
        ("Phase", "string", "", 0),
        ("Color", "string", "", 1),
        ("Age", "date", "", 0),
    ]
    assert [each["description"] for each in table["columnDefinitions"][1:3]] == [
        "How big",
        "Custom resource definition column (in JSONPath format): .status.phase",
    ]


async def test_cells_are_typed_and_absent_ones_null(gadget_api: Api, gadgets: str) -> None:
    [row] = (await gadget_api.get(gadgets, accept=TABLE)).body["rows"]
    assert row["cells"][:4] == ["a", 1, None, "red"]
    # An age, such as 0s.
    assert row["cells"][4].endswith("s")


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        pytest.param("", "PartialObjectMetadata", id="by default metadata"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "Gadget", id="object"),
        pytest.param("None", None, id="none"),
    ],
)
async def test_row_includes_the_requested_object(
    gadget_api: Api, gadgets: str, include: str, kind: Any
) -> None:
    answer = await gadget_api.get(f"{gadgets}/a", accept=TABLE, includeObject=include)
    [row] = answer.body["rows"]
    assert (row.get("object") or {}).get("kind") == kind


async def test_unknown_include_object_is_rejected(gadget_api: Api, gadgets: str) -> None:
    answer = await gadget_api.get(f"{gadgets}/a", accept=TABLE, includeObject="X")
    assert gadget_api.failure_text(answer) == (
        '400 BadRequest: Unable to convert to Table as requested: includeObject: Invalid value: "X"'
        ": must be 'Metadata', 'Object', 'None', or empty"
    )


@pytest.mark.parametrize(
    ("plural", "body", "names", "cells"),
    [
        pytest.param("configmaps", config_map(), ["Name", "Data", "Age"], ["a", 1], id="map"),
        pytest.param(
            "pods",
            pod(),
            [
                *("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node"),
                "Readiness Gates",
            ],
            ["a", "0/1", "Pending", "0"],
            id="pod",
        ),
        pytest.param(
            "services",
            service(clusterIP="None"),
            ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"],
            ["a", "ClusterIP", "None", "<none>", "80/TCP"],
            id="service",
        ),
        pytest.param(
            "secrets",
            {"metadata": {"name": "a"}, "stringData": {"k": "v"}},
            ["Name", "Type", "Data", "Age"],
            ["a", "Opaque", 1],
            id="secret",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {
                "metadata": {"name": "a"},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "none",
                },
            },
            [
                *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
                *("VolumeAttributesClass", "Age", "VolumeMode"),
            ],
            ["a", "Pending", "", "", "", "none", "<unset>"],
            id="claim",
        ),
    ],
)
async def test_table_of_a_built_in_kind(
    api: Api, plural: str, body: JSON, names: list[str], cells: list[Any]
) -> None:
    await api.create(api.path(plural), body)
    table = (await api.get(api.path(plural, "a"), accept=TABLE)).body
    assert [each["name"] for each in table["columnDefinitions"]] == names
    assert table["rows"][0]["cells"][: len(cells)] == cells


async def test_error_is_not_a_table(api: Api) -> None:
    answer = await api.get(api.path("pods", "a"), accept=TABLE)
    assert api.failure_text(answer) == '404 NotFound: pods "a" not found'

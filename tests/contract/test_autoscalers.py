"""HorizontalPodAutoscalers: defaults and validation."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract import version_marks
from tests.contract.api import Api

GROUP = "autoscaling/v2"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TARGET = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "j"}


def autoscaler(**spec: object) -> JSON:
    return {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3} | spec}


def resource(**target: object) -> JSON:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


async def test_defaults_are_filled_in(api: Api) -> None:
    created = await api.create(api.path("horizontalpodautoscalers", group=GROUP), autoscaler())
    assert created["spec"] == {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [resource(type="Utilization", averageUtilization=80)],
    }
    assert created["status"] == {"desiredReplicas": 0, "currentMetrics": None}


def external(**target: object) -> JSON:
    return {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}


def pods(**target: object) -> JSON:
    return {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": target}}


def invalid(*causes: str) -> str:
    """Return the message; each cause is its reason, a colon, and its message."""
    names = sorted({cause.partition(": ")[0] for cause in causes})
    texts = sorted(cause.partition(": ")[2] for cause in causes)
    shown = " ".join(f"[{name} {text.partition(': ')[0]}]" for name, text in _pairs(causes))
    assert names
    return (
        f'422 Invalid: {shown} HorizontalPodAutoscaler.autoscaling "a" is invalid: '
        f"{', '.join(texts)}"
    )


def _pairs(causes: tuple[str, ...]) -> list[tuple[str, str]]:
    found = {}
    for cause in causes:
        name, _, text = cause.partition(": ")
        found[f"{name} {text.partition(': ')[0]}"] = (name, text)
    return [found[key] for key in sorted(found)]


REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
UNSUPPORTED, FORBIDDEN = "FieldValueNotSupported", "FieldValueForbidden"
TYPES = '"ContainerResource", "External", "Object", "Pods", "Resource"'


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"minReplicas": 4},
            invalid(
                f"{INVALID}: spec.maxReplicas: Invalid value: 3: must be greater than or equal "
                "to `minReplicas`"
            ),
            id="less than the least",
        ),
        pytest.param(
            {"maxReplicas": 0},
            invalid(
                f"{REQUIRED}: spec.maxReplicas: Required value: must be set and greater than 0",
                f"{INVALID}: spec.maxReplicas: Invalid value: 0: must be greater than or equal "
                "to `minReplicas`",
            ),
            id="no replicas",
            marks=version_marks.NOTHING_FOR_REPLICAS,
        ),
        pytest.param(
            {"minReplicas": -1},
            invalid(
                f"{INVALID}: spec.minReplicas: Invalid value: -1: must be greater than or equal "
                "to 1"
            ),
            id="negative",
        ),
        pytest.param(
            {"scaleTargetRef": {"apiVersion": "a/v1", "kind": "a/b"}},
            invalid(
                f"{INVALID}: spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'",
                f"{REQUIRED}: spec.scaleTargetRef.name: Required value",
            ),
            id="reference",
        ),
        pytest.param(
            {"metrics": [{"type": "Foo"}]},
            invalid(
                f'{UNSUPPORTED}: spec.metrics[0].type: Unsupported value: "Foo": supported '
                f"values: {TYPES}"
            ),
            id="type of metric",
        ),
        pytest.param(
            {"metrics": [{"type": "Resource"}]},
            invalid(
                f"{REQUIRED}: spec.metrics[0].resource: Required value: must populate "
                "information for the given metric source"
            ),
            id="no metric",
        ),
        pytest.param(
            {"metrics": [resource()]},
            invalid(
                f"{REQUIRED}: spec.metrics[0].resource.target.type: Required value: must "
                "specify a metric target type",
                f'{INVALID}: spec.metrics[0].resource.target.type: Invalid value: "": must be '
                "either Utilization, Value, or AverageValue",
                f"{REQUIRED}: spec.metrics[0].resource.target.averageUtilization: Required "
                "value: must set either a target raw value or a target utilization",
            ),
            id="no target",
        ),
        pytest.param(
            {"metrics": [resource(type="Utilization", averageUtilization=0)]},
            invalid(
                f"{INVALID}: spec.metrics[0].resource.target.averageUtilization: Invalid value: "
                "0: must be greater than 0"
            ),
            id="nothing to reach",
        ),
        pytest.param(
            {"metrics": [{"type": "Pods", "pods": {}}]},
            invalid(
                f"{REQUIRED}: spec.metrics[0].pods.metric.name: Required value: must specify a "
                "metric name",
                f"{REQUIRED}: spec.metrics[0].pods.target.type: Required value: must specify a "
                "metric target type",
                f'{INVALID}: spec.metrics[0].pods.target.type: Invalid value: "": must be '
                "either Utilization, Value, or AverageValue",
                f"{REQUIRED}: spec.metrics[0].pods.target.averageValue: Required value: must "
                "specify a positive target averageValue",
            ),
            id="pods",
        ),
        pytest.param(
            {"metrics": [resource(type="Value", averageUtilization=80, averageValue="0")]},
            invalid(
                f"{INVALID}: spec.metrics[0].resource.target.averageValue: Invalid value: "
                '"0": must be positive',
                f"{FORBIDDEN}: spec.metrics[0].resource.target.averageValue: Forbidden: may not "
                "set both a target raw value and a target utilization",
            ),
            id="two targets",
        ),
        pytest.param(
            {"metrics": [resource(type="Value", value="-1")]},
            invalid(
                f"{INVALID}: spec.metrics[0].resource.target.value: Invalid value: "
                '"-1": must be positive',
                f"{REQUIRED}: spec.metrics[0].resource.target.averageUtilization: Required "
                "value: must set either a target raw value or a target utilization",
            ),
            id="value of a resource",
        ),
        pytest.param(
            {"metrics": [external(type="Utilization", averageUtilization=80)]},
            invalid(
                f"{REQUIRED}: spec.metrics[0].external.target.averageValue: Required value: "
                "must set either a target value for metric or a per-pod target",
            ),
            id="external without a value",
        ),
        pytest.param(
            {"metrics": [external(type="Value", value="1", averageValue="1")]},
            invalid(
                f"{FORBIDDEN}: spec.metrics[0].external.target.value: Forbidden: may not set "
                "both a target value for metric and a per-pod target",
            ),
            id="external with two values",
        ),
        pytest.param(
            {"metrics": [{"type": "Object", "object": external(type="Value")["external"]}]},
            invalid(
                f"{REQUIRED}: spec.metrics[0].object.describedObject.kind: Required value",
                f"{REQUIRED}: spec.metrics[0].object.describedObject.name: Required value",
                f"{REQUIRED}: spec.metrics[0].object.target.averageValue: Required value: must "
                "set either a target value or averageValue",
            ),
            id="object without a value",
        ),
        pytest.param(
            {
                "metrics": [
                    {
                        **resource(type="Utilization", averageUtilization=1),
                        "external": external(type="Value", value="1")["external"],
                    }
                ]
            },
            invalid(
                f"{FORBIDDEN}: spec.metrics[0].external: Forbidden: must populate the given "
                "metric source only",
            ),
            id="two sources",
        ),
        pytest.param(
            {
                "metrics": [
                    {
                        "type": "ContainerResource",
                        "containerResource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 1},
                        },
                    }
                ]
            },
            invalid(
                f"{REQUIRED}: spec.metrics[0].containerResource.container: Required value: must "
                "specify a container",
            ),
            id="no container",
        ),
    ],
)
async def test_invalid_autoscaler_is_rejected(api: Api, spec: JSON, said: str) -> None:
    path = api.path("horizontalpodautoscalers", group=GROUP)
    answer = await api.post(path, autoscaler(**spec))
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("metrics", "targets"),
    [
        pytest.param(
            [resource(type="Utilization", averageUtilization=60)],
            "cpu: <unknown>/60%",
            id="utilization",
        ),
        pytest.param(
            [resource(type="AverageValue", averageValue="2")], "cpu: <unknown>/2", id="average"
        ),
        pytest.param([pods(type="AverageValue", averageValue="10")], "<unknown>/10", id="pods"),
        pytest.param(
            [
                external(type="Value", value="3"),
                external(type="AverageValue", averageValue="4"),
                resource(type="Utilization", averageUtilization=5),
            ],
            "<unknown>/3, <unknown>/4 (avg) + 1 more...",
            id="three",
        ),
    ],
)
async def test_table_shows_target_and_metrics(api: Api, metrics: list[JSON], targets: str) -> None:
    path = api.path("horizontalpodautoscalers", group=GROUP)
    await api.create(path, autoscaler(metrics=metrics))

    table = (await api.get(f"{path}/a", accept=TABLE)).body

    names = [each["name"] for each in table["columnDefinitions"]]
    assert names == ["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"]
    assert table["rows"][0]["cells"][:-1] == ["a", "PyTorchJob/j", targets, "1", 3, 0]

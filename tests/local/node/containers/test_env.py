"""Environment variables and the expansion of commands."""

import attrs
import pytest

from dlctl.local.node.containers.downward_api import PodPlacement
from dlctl.local.node.containers.env import environment, expand
from dlctl.local.node.containers.references import (
    ConfigSources,
    MissingReferenceError,
    references,
)
from tests.local.node.builders import make_container, make_pod

PLACE = PodPlacement(node_name="localhost", pod_ip="10.244.0.9", host_ip="10.244.0.1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$(A)-$(B)", "1-2", id="known names"),
        pytest.param("$(NO)", "$(NO)", id="unknown name stays"),
        pytest.param("$$(A)", "$(A)", id="escaped"),
        pytest.param("$$$(A)", "$1", id="escape before a reference"),
        pytest.param("$A ${A} $(A", "$A ${A} $(A", id="other spellings stay"),
    ],
)
def test_variables_are_expanded_as_in_kubernetes(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_variable_sees_those_before_it_only() -> None:
    env = [
        {"name": "A", "value": "$(B)"},
        {"name": "B", "value": "1"},
        {"name": "C", "value": "$(B)"},
    ]
    pod = make_pod(env=env)
    given = environment(pod.spec.containers[0], pod, PLACE, ConfigSources())
    assert given == {"A": "$(B)", "B": "1", "C": "1"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "pod"),
        ("metadata.namespace", "default"),
        ("metadata.labels['job']", "mnist"),
        ("metadata.annotations['none']", ""),
        ("metadata.labels", 'job="mnist"'),
        ("spec.nodeName", "localhost"),
        ("status.podIP", "10.244.0.9"),
        ("status.hostIP", "10.244.0.1"),
    ],
)
def test_field_of_the_pod_becomes_a_value(path: str, expected: str) -> None:
    pod = make_pod(
        env=[{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}], labels={"job": "mnist"}
    )
    assert environment(pod.spec.containers[0], pod, PLACE, ConfigSources()) == {"X": expected}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param({"resource": "limits.cpu"}, "2", id="rounded up"),
        pytest.param({"resource": "limits.cpu", "divisor": "1m"}, "1500", id="divisor"),
        pytest.param({"resource": "limits.memory", "divisor": "1Mi"}, "200", id="mebibytes"),
        pytest.param({"resource": "limits.memory", "divisor": "0"}, "209715200", id="no divisor"),
        pytest.param({"resource": "requests.memory"}, "0", id="no request"),
        pytest.param({"resource": "limits.cpu", "containerName": "free"}, "8", id="no limit"),
    ],
)
def test_resource_of_a_container_becomes_a_value(reference: dict[str, str], expected: str) -> None:
    main = make_container(
        env=[{"name": "X", "valueFrom": {"resourceFieldRef": reference}}],
        resources={"limits": {"cpu": "1500m", "memory": "200Mi"}},
    )
    pod = make_pod(containers=[main, make_container("free")])
    place = attrs.evolve(PLACE, allocatable={"cpu": "8"})
    given = environment(pod.spec.containers[0], pod, place, ConfigSources())
    assert given == {"X": expected}


def test_values_come_from_config_maps_and_secrets() -> None:
    container = make_container(
        env=[
            {"name": "ONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {
                "name": "NONE",
                "valueFrom": {"configMapKeyRef": {"name": "m", "key": "no", "optional": True}},
            },
        ],
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "m"}}],
    )
    pod = make_pod(containers=[container])
    sources = ConfigSources(config_maps={"m": {"a": b"1"}}, secrets={"s": {"k": b"hidden"}})
    given = environment(pod.spec.containers[0], pod, PLACE, sources)
    assert given == {"P_a": "1", "ONE": "hidden"}
    assert references(pod) == ({"m"}, {"s"})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            {"secretKeyRef": {"name": "s", "key": "k"}}, 'secret "s" not found', id="no object"
        ),
        pytest.param(
            {"configMapKeyRef": {"name": "m", "key": "k"}}, 'key "k" not found', id="no key"
        ),
        pytest.param({"fieldRef": {"fieldPath": "spec.x"}}, "spec.x", id="no such field"),
    ],
)
def test_missing_source_is_named(source: object, message: str) -> None:
    pod = make_pod(env=[{"name": "X", "valueFrom": source}])
    with pytest.raises(MissingReferenceError, match=message):
        environment(pod.spec.containers[0], pod, PLACE, ConfigSources(config_maps={"m": {}}))

"""Reading pod templates: the same types as in the schema, and messages with field and fix."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.pods.pod_canonicalization import canonicalize_pod_template
from dlctl.errors import InvalidJobError
from tests.support.core_types import undecodable


def of_container(**fields: Any) -> JSON:
    return {"spec": {"containers": [{"name": "a", "image": "b", **fields}]}}


def of_spec(**fields: Any) -> JSON:
    return {"spec": {"containers": [{"name": "a", "image": "b"}], **fields}}


def refusal(template: Any) -> str:
    with pytest.raises(InvalidJobError) as caught:
        canonicalize_pod_template(template, "t")
    return str(caught.value).replace("t.spec.containers[0]", "c")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        pytest.param(
            of_container(env=[{"name": "A", "value": 5}]),
            "c.env[0].value: must be a string, not 5: put it in quotes",
            id="number in the environment",
        ),
        pytest.param(
            of_container(env=[{"name": "A", "value": True}]),
            "c.env[0].value: must be a string, not true: put it in quotes",
            id="boolean in the environment",
        ),
        pytest.param(
            of_container(env=[{"name": ["x"]}]),
            "c.env[0].name: must be a string, not ['x']",
            id="list for a name",
        ),
        pytest.param(
            of_container(env={"A": "b"}),
            "c.env: must be a list, not {'A': 'b'}: begin each item with a dash",
            id="environment as a map",
        ),
        pytest.param(
            of_container(command="sleep 1"),
            "c.command: must be a list, not 'sleep 1': write [a, b] or dashes",
            id="command in one string",
        ),
        pytest.param(
            of_container(args=["--lr", 0.1]),
            "c.args[1]: must be a string, not 0.1: put it in quotes",
            id="number among arguments",
        ),
        pytest.param(
            of_container(resources={"limits": {"memory": "16GB"}}),
            "c.resources.limits[memory]: must be a quantity such as 500m, 2 or 16Gi, not '16GB': "
            "write 16Gi",
            id="gigabytes",
        ),
        pytest.param(
            of_container(resources={"requests": {"cpu": "two"}}),
            "c.resources.requests[cpu]: must be a quantity such as 500m, 2 or 16Gi, not 'two'",
            id="amount in words",
        ),
        pytest.param(
            of_container(ports=[{"containerPort": "${PORT}"}]),
            "c.ports[0].containerPort: must be an integer, not '${PORT}': fill in the placeholder "
            "first, as with `envsubst`",
            id="port to fill in",
        ),
        pytest.param(
            of_container(ports=[{"containerPort": "80"}]),
            "c.ports[0].containerPort: must be an integer, not '80': leave out the quotes",
            id="port in quotes",
        ),
        pytest.param(
            of_container(ports=[{"containerPort": 2**31}]),
            "c.ports[0].containerPort: is 2147483648, but must be between -2147483648 and "
            "2147483647",
            id="port of 64 bits",
        ),
        pytest.param(
            of_container(volumeMounts=[{"name": "v", "mountPath": []}]),
            "c.volumeMounts[0].mountPath: must be a string, not []",
            id="list for a path",
        ),
        pytest.param(
            of_container(tty="true"),
            "c.tty: must be true or false, not 'true': leave out the quotes",
            id="boolean in quotes",
        ),
        pytest.param(
            of_container(livenessProbe={"tcpSocket": {"port": True}}),
            "c.livenessProbe.tcpSocket.port: must be an integer or a string, not true",
            id="port of a probe",
        ),
        pytest.param(
            of_spec(nodeSelector={"gpu": True}),
            "t.spec.nodeSelector[gpu]: must be a string, not true: put it in quotes",
            id="boolean label",
        ),
        pytest.param(
            of_spec(tolerations={"key": "gpu"}),
            "t.spec.tolerations: must be a list, not {'key': 'gpu'}: begin each item with a dash",
            id="one toleration",
        ),
        pytest.param(
            {**of_spec(), "metadata": {"finalizers": True}},
            "t.metadata.finalizers: must be a list, not true: write [a, b] or dashes",
            id="finalizers",
        ),
        pytest.param(
            {**of_spec(), "metadata": {"creationTimestamp": "now"}},
            "t.metadata.creationTimestamp: must be a time such as 2006-01-02T15:04:05Z, not 'now'",
            id="time",
        ),
    ],
)
def test_value_of_a_wrong_type_is_rejected_with_the_field_and_the_fix(
    template: JSON, said: str
) -> None:
    assert undecodable(template)
    assert refusal(template) == said


@pytest.mark.parametrize("amount", [0, 1, 0.5, "0", "500m", "1e3", "1E", "-1", ".5", "2.", "1Ki"])
def test_any_kubernetes_quantity_is_accepted(amount: Any) -> None:
    template = of_container(resources={"limits": {"cpu": amount}})
    assert not undecodable(template)
    assert canonicalize_pod_template(template, "t") == template


@pytest.mark.parametrize("amount", ["", ".", "16GB", "1K", "1e", "1e1.5", "1 Gi", "0x1", "1\n", []])
def test_quantity_that_kubernetes_rejects_is_rejected(amount: Any) -> None:
    template = of_container(resources={"limits": {"cpu": amount}})
    assert undecodable(template)
    refusal(template)


def test_null_counts_as_absent() -> None:
    env = [{"name": "A", "value": None}]
    limits = {"nvidia.com/gpu": None, "cpu": 1}
    template = of_container(env=env, resources={"limits": limits, "requests": None}, command=None)
    template["metadata"] = {"creationTimestamp": None, "labels": None}
    assert canonicalize_pod_template(template, "t") == {
        **of_container(env=[{"name": "A"}], resources={"limits": {"cpu": 1}}),
        "metadata": {},
    }


def test_null_in_a_list_of_strings_is_an_empty_string() -> None:
    # As in a pod: dropping an argument would shift the following ones.
    template = of_container(args=["--name", None])
    template["spec"]["nodeSelector"] = {"gpu": None}
    read = canonicalize_pod_template(template, "t")
    assert read["spec"]["containers"][0]["args"] == ["--name", ""]
    assert read["spec"]["nodeSelector"] == {"gpu": ""}


def test_field_names_match_in_any_case_and_map_keys_exactly() -> None:
    given: JSON = {"Spec": {"CONTAINERS": [{"Name": "a", "VolumeMounts": [{"MountPath": "/a"}]}]}}
    given["Spec"]["nodeselector"] = {"Zone": "A"}
    assert canonicalize_pod_template(given, "t") == {
        "spec": {
            "containers": [{"name": "a", "volumeMounts": [{"mountPath": "/a"}]}],
            "nodeSelector": {"Zone": "A"},
        }
    }


def test_unknown_newer_field_is_kept() -> None:
    template = of_container(newer={"a": [None, 1]})
    assert canonicalize_pod_template(template, "t") == template

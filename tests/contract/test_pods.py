"""Invalid pods."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import pod


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            pod(containers=[]),
            (
                '422 Invalid: [FieldValueRequired spec.containers] Pod "a" is invalid: '
                "spec.containers: Required value"
            ),
            id="no containers",
        ),
        pytest.param(
            pod(containers=[{}]),
            (
                "422 Invalid: [FieldValueRequired spec.containers[0].image] "
                '[FieldValueRequired spec.containers[0].name] Pod "a" is invalid: '
                "spec.containers[0].image: Required value, spec.containers[0].name: "
                "Required value"
            ),
            id="no name and no image",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]),
            (
                '422 Invalid: [FieldValueDuplicate spec.containers[1].name] Pod "a" is '
                'invalid: spec.containers[1].name: Duplicate value: "a"'
            ),
            id="same name twice",
        ),
        pytest.param(
            pod(containers=[{"name": "A_", "image": "x"}]),
            (
                '422 Invalid: [FieldValueInvalid spec.containers[0].name] Pod "a" is '
                'invalid: spec.containers[0].name: Invalid value: "A_": a lowercase RFC '
                "1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            ),
            id="name",
        ),
        pytest.param(
            pod(restartPolicy="Sometimes"),
            (
                '422 Invalid: [FieldValueNotSupported spec.restartPolicy] Pod "a" is '
                'invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported '
                'values: "Always", "OnFailure", "Never"'
            ),
            id="restart policy",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x", "ports": [{"containerPort": 70000}]}]),
            (
                "422 Invalid: [FieldValueInvalid "
                'spec.containers[0].ports[0].containerPort] Pod "a" is invalid: '
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be"
                " between 1 and 65535, inclusive"
            ),
            id="port",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x", "imagePullPolicy": "Maybe"}]),
            (
                "422 Invalid: [FieldValueNotSupported spec.containers[0].imagePullPolicy]"
                ' Pod "a" is invalid: spec.containers[0].imagePullPolicy: Unsupported '
                'value: "Maybe": supported values: "Always", "IfNotPresent", "Never"'
            ),
            id="pull policy",
        ),
        pytest.param(
            pod(
                containers=[
                    {"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
                ]
            ),
            (
                "422 Invalid: [FieldValueNotFound "
                'spec.containers[0].volumeMounts[0].name] Pod "a" is invalid: '
                'spec.containers[0].volumeMounts[0].name: Not found: "v"'
            ),
            id="unknown volume",
        ),
        pytest.param(
            pod(
                volumes=[{"name": "v", "emptyDir": {}}],
                containers=[
                    {
                        "name": "a",
                        "image": "x",
                        "volumeMounts": [
                            {"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "../b"},
                            {"name": "v", "mountPath": "/w", "subPathExpr": "/w"},
                        ],
                    }
                ],
            ),
            (
                "422 Invalid: [FieldValueInvalid spec.containers[0].volumeMounts.subPathExpr] "
                "[FieldValueInvalid spec.containers[0].volumeMounts[0].subPathExpr] "
                'Pod "a" is invalid: spec.containers[0].volumeMounts.subPathExpr: Invalid value: '
                """"../b": must not contain '..', """
                "spec.containers[0].volumeMounts.subPathExpr: Invalid value: "
                '"/w": must be a relative path, '
                'spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "../b": '
                "subPathExpr and subPath are mutually exclusive"
            ),
            id="paths within a volume",
        ),
        pytest.param(
            pod(
                containers=[
                    {
                        "name": "a",
                        "image": "x",
                        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
                    }
                ]
            ),
            (
                "422 Invalid: [FieldValueInvalid spec.containers[0].resources.requests] "
                'Pod "a" is invalid: spec.containers[0].resources.requests: Invalid '
                'value: "2": must be less than or equal to cpu limit of 1'
            ),
            id="request above the limit",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x", "resources": {"limits": {"gpu": "1"}}}]),
            (
                "422 Invalid: [FieldValueInvalid "
                "spec.containers[0].resources.limits[gpu]] [FieldValueInvalid "
                'spec.containers[0].resources.requests[gpu]] Pod "a" is invalid: '
                'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be '
                "a standard resource for containers, "
                'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be '
                "a standard resource type or fully qualified, "
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must '
                "be a standard resource for containers, "
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must '
                "be a standard resource type or fully qualified"
            ),
            id="resource of no domain",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x", "resources": {"limits": {"cpu": "x"}}}]),
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: '
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
            id="quantity",
        ),
    ],
)
async def test_malformed_pod_is_invalid(api: Api, body: object, said: str) -> None:
    answer = await api.post(api.path("pods"), body)
    assert api.failure_text(answer) == said


async def test_empty_string_of_a_pod_means_the_default_unless_it_is_a_value(api: Api) -> None:
    probe = {"httpGet": {"port": 80, "path": "", "scheme": ""}}
    main: JSON = {"name": "main", "image": "x:1", "imagePullPolicy": "", "workingDir": ""}
    main |= {"env": [{"name": "A", "value": ""}], "readinessProbe": probe}
    main |= {"ports": [{"containerPort": 80, "name": "", "protocol": ""}]}
    empty = ("restartPolicy", "dnsPolicy", "schedulerName", "serviceAccountName", "hostname")
    volumes = [{"name": "v", "hostPath": {"path": "/", "type": ""}}]
    body = pod(containers=[main], volumes=volumes)
    body["spec"] |= dict.fromkeys(empty, "")
    # No scheduler is to find it.
    answer = await api.post(f"{api.path('pods')}?dryRun=All", body)
    spec = answer.body["spec"]
    assert [spec.get(name) for name in empty] == [
        *("Always", "ClusterFirst", "default-scheduler", "default", None)
    ]
    (shown,) = spec["containers"]
    assert (shown["imagePullPolicy"], shown["ports"][0]["protocol"]) == ("IfNotPresent", "TCP")
    assert shown["readinessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert (shown["env"], "workingDir" in shown) == ([{"name": "A"}], False)
    assert spec["volumes"] == volumes


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            pod(containers="x"),
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: '
                "cannot unmarshal string into Go struct field PodSpec.spec.containers of "
                "type []v1.Container"
            ),
            id="containers",
        ),
        pytest.param(
            pod(containers=[{"name": "a", "image": "x", "env": [{"name": "A", "value": 1}]}]),
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: '
                "cannot unmarshal number into Go struct field "
                "EnvVar.spec.containers.env.value of type string"
            ),
            id="env value",
        ),
        pytest.param(
            {"metadata": {"name": "a"}, "spec": []},
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: '
                "cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"
            ),
            id="spec",
        ),
        pytest.param(
            pod(hostNetwork="yes"),
            (
                '400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: '
                "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of"
                " type bool"
            ),
            id="host network",
        ),
    ],
)
async def test_pod_field_of_a_wrong_type_is_a_bad_request(
    api: Api, body: object, said: str
) -> None:
    answer = await api.post(api.path("pods"), body)
    assert api.failure_text(answer) == said

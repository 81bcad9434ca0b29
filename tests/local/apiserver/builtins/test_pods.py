"""Defaults and checks of pods, by their strategy."""

from collections.abc import Iterator
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.builtins.pod_defaults import qos_class
from dlctl.local.apiserver.resources import Strategy
from dlctl.local.apiserver.status import StatusError
from tests.local.apiserver.builtins.admitting import refusals


def container(name: str = "main", **fields: Any) -> JSON:
    return {"name": name, "image": "busybox:1.36", **fields}


def pod(*containers: JSON, **spec: Any) -> JSON:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def values(value: Any) -> Iterator[Any]:
    """Yield the value and everything in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from values(each)


def test_pod_gets_the_defaults_that_clients_rely_on(pods: Strategy) -> None:
    created = pods.admit_create(pod())

    spec = created["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert spec["containers"][0] == {
        "name": "main",
        "image": "busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"containers": [container(lifecycle={"preStop": {"httpGet": {"port": 80}}})]},
            {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}},
            id="hook",
        ),
        pytest.param(
            {"containers": [container(readinessProbe={"grpc": {"port": 80}})]},
            {"port": 80, "service": ""},
            id="gRPC",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    }
                ]
            },
            {"path": "t", "expirationSeconds": 3600},
            id="token",
        ),
    ],
)
def test_nested_fields_get_defaults(pods: Strategy, spec: JSON, expected: JSON) -> None:
    assert expected in list(values(pods.admit_create(pod(**spec))["spec"]))


def test_admitting_twice_changes_nothing(pods: Strategy) -> None:
    once = pods.admit_create(pod(container(ports=[{"containerPort": 1}]), volumes=[{"name": "v"}]))

    assert pods.admit_create(once) == once
    assert pods.admit_update(once, once) == once


def test_empty_fields_are_dropped(pods: Strategy) -> None:
    sent = pod(container(env=[], args=None, unknown=1), nodeSelector={}, volumes=[{"name": "v"}])

    spec = pods.admit_create(sent)["spec"]

    assert not {"env", "args", "unknown"} & set(spec["containers"][0])
    assert "nodeSelector" not in spec
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("busybox", "Always"),
        pytest.param("busybox:latest", "Always"),
        pytest.param("host:5000/busybox", "Always"),
        pytest.param("host:5000/busybox:1", "IfNotPresent"),
        pytest.param("busybox@sha256:0", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_from_the_tag(pods: Strategy, image: str, policy: str) -> None:
    created = pods.admit_create(pod(container(image=image)))

    assert created["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_quantities_are_canonical_and_limits_default_requests(pods: Strategy) -> None:
    limits = {"cpu": 0.5, "memory": "1024Mi"}

    created = pods.admit_create(pod(container(resources={"limits": limits})))

    resources = created["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert created["status"]["qosClass"] == "Guaranteed"


def test_quantity_that_is_null_is_zero(pods: Strategy) -> None:
    created = pods.admit_create(pod(container(resources={"limits": {"cpu": None}})))

    assert created["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "0"}


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        pytest.param({}, "BestEffort"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable"),
        pytest.param({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        pytest.param({"limits": {"cpu": "1", "memory": "1"}}, "Guaranteed"),
    ],
)
def test_qos_class_follows_from_resources(resources: JSON, qos: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == qos


LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        pytest.param(
            {"kind": "Pod", "metadata": {"name": "p"}}, "spec.containers: Required value", id="none"
        ),
        pytest.param(
            pod({"name": "main"}), "spec.containers[0].image: Required value", id="no image"
        ),
        pytest.param(
            pod(
                container(
                    env=[
                        {
                            "name": "GPUS",
                            "valueFrom": {
                                "resourceFieldRef": {"resource": "limits.nvidia.com/gpu"}
                            },
                        }
                    ]
                )
            ),
            "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "
            '"limits.nvidia.com/gpu": supported values: "limits.cpu", "limits.ephemeral-storage", '
            '"limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
            id="resource that no variable can have",
        ),
        pytest.param(
            pod(container(), container()),
            'spec.containers[1].name: Duplicate value: "main"',
            id="duplicate name",
        ),
        pytest.param(
            pod(container("Main")),
            f'spec.containers[0].name: Invalid value: "Main": {LABEL_RULE}',
            id="upper case",
        ),
        pytest.param(
            pod(restartPolicy="Sometimes"),
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
            '"Always", "OnFailure", "Never"',
            id="restart policy",
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
            id="two volume types",
        ),
        pytest.param(
            pod(activeDeadlineSeconds=0),
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
            "inclusive",
            id="deadline",
        ),
    ],
)
def test_invalid_pod_is_rejected(pods: Strategy, sent: JSON, message: str) -> None:
    assert refusals(pods, sent) == [message]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"env": [{"value": "x"}]}, ".env[0].name: Required value", id="env without name"
        ),
        pytest.param(
            {
                "env": [
                    {
                        "name": "A",
                        "value": "x",
                        "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
                    }
                ]
            },
            '.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
            id="two values",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "x", "mountPath": "/x"}]},
            '.volumeMounts[0].name: Not found: "x"',
            id="unknown volume",
        ),
        pytest.param(
            {"ports": [{"containerPort": 70000}]},
            ".ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            id="port",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            '.ports[1].name: Duplicate value: "a"',
            id="port name",
        ),
        pytest.param(
            {"imagePullPolicy": "Now"},
            '.imagePullPolicy: Unsupported value: "Now": supported values: '
            '"Always", "IfNotPresent", "Never"',
            id="pull policy",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
            '.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="more than the limit",
        ),
        pytest.param(
            {"resources": {"requests": {"nvidia.com/gpu": "1"}}},
            ".resources.limits: Required value: Limit must be set for non overcommitable resources",
            id="gpu without limit",
        ),
        pytest.param(
            {"livenessProbe": {}},
            ".livenessProbe: Required value: must specify a handler type",
            id="probe",
        ),
    ],
)
def test_invalid_container_is_rejected(pods: Strategy, fields: JSON, message: str) -> None:
    assert refusals(pods, pod(container(**fields))) == [f"spec.containers[0]{message}"]


def test_value_of_the_wrong_type_is_a_bad_request(pods: Strategy) -> None:
    with pytest.raises(StatusError) as error:
        pods.admit_create(pod(container(env=[{"name": "A", "value": 1}])))

    assert error.value.code == 400
    assert error.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go '
        "struct field EnvVar.spec.containers.env.value of type string"
    )


def test_pod_image_can_change_and_its_command_cannot(pods: Strategy) -> None:
    old = pods.admit_create(pod())

    updated = pods.admit_update(old, pod(container(image="other:1")))

    assert updated["spec"]["containers"][0]["image"] == "other:1"
    with pytest.raises(StatusError, match="pod updates may not change fields other than"):
        pods.admit_update(old, pod(container(command=["x"])))
    with pytest.raises(StatusError, match="pod updates may not add or remove containers"):
        pods.admit_update(old, pod(container(), container("b")))


def test_status_update_writes_only_the_status(pods: Strategy) -> None:
    old = pods.admit_create(pod())
    sent = {**old, "spec": {}, "status": {"phase": "Running", "unknown": 1}}

    updated = pods.admit_status(old, sent)

    assert updated == {**old, "status": {"phase": "Running"}}

"""Invalid jobs in the list form, with exact messages."""

from typing import Any

import pytest

from dlctl.errors import InvalidJobError
from tests.builders import entry, make_job, mxjob, template, training_job
from tests.support.cost_growth import cost_growth

TYPES = "SCHEDULER, SERVER, WORKER"


def refusal(*entries: Any, **spec: Any) -> str:
    if entries:
        spec["replicaSpecs"] = list(entries)
    with pytest.raises(InvalidJobError) as caught:
        make_job(mxjob(**spec))
    return str(caught.value)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        pytest.param(
            [entry("SCHEDULER", 2)],
            "spec.replicaSpecs[0].replicas: is 2, but there must be exactly 1 SCHEDULER",
            id="two schedulers",
        ),
        pytest.param(
            [entry("SCHEDULER", 0)],
            "spec.replicaSpecs[0].replicas: is 0, but there must be exactly 1 SCHEDULER",
            id="scheduler of zero replicas",
        ),
        pytest.param(
            [entry("SERVER"), entry("WORKER")],
            "spec.replicaSpecs: lists no SCHEDULER, but there must be exactly 1: add it",
            id="no scheduler",
        ),
        pytest.param(
            [entry("WORKER"), entry("worker")],
            "spec.replicaSpecs[1]: lists WORKER twice: give one entry a type",
            id="type twice",
        ),
        pytest.param(
            [entry("PS")],
            f"spec.replicaSpecs[0].mxReplicaType: is 'PS', but must be one of {TYPES}",
            id="unknown type",
        ),
    ],
)
def test_invalid_set_of_replicas_is_rejected(entries: list[Any], message: str) -> None:
    assert refusal(*entries) == message


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param(-1, "is -1, but must be between 0 and 10000", id="negative"),
        pytest.param(10_001, "is 10001, but must be between 0 and 10000", id="a slip of the key"),
        pytest.param(True, "must be an integer, not true", id="bool"),
        pytest.param("2", "must be an integer, not '2': leave out the quotes", id="string"),
        pytest.param(1.5, "must be an integer, not 1.5", id="fraction"),
    ],
)
def test_invalid_replica_count_is_rejected(value: Any, problem: str) -> None:
    said = refusal(entry("SCHEDULER"), entry("WORKER", value))
    assert said == f"spec.replicaSpecs[1].replicas: {problem}"


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_port_out_of_range_is_rejected(port: int) -> None:
    said = refusal(entry("SCHEDULER", PsRootPort=port))
    assert said == f"spec.replicaSpecs[0].PsRootPort: is {port}, but must be between 1 and 65535"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"cleanupPodPolicy": "Some"},
            "spec.cleanupPodPolicy: is 'Some', but must be one of All, Running, None",
            id="clean policy",
        ),
        pytest.param(
            {"jobMode": "MXTrain"},
            "spec.jobMode: is 'MXTrain', but must be one of dist, local",
            id="mode",
        ),
        pytest.param(
            {"terminationPolicy": {}},
            "spec.terminationPolicy.chief: is missing: name the replica that decides the job, "
            "or leave out terminationPolicy",
            id="empty termination policy",
        ),
        pytest.param(
            {"terminationPolicy": {"chief": {"replicaName": "MASTER"}}},
            f"spec.terminationPolicy.chief.replicaName: is 'MASTER', but must be one of {TYPES}",
            id="chief of no type",
        ),
        pytest.param(
            {"terminationPolicy": {"chief": {"replicaName": "WORKER", "replicaIndex": 2}}},
            "spec.terminationPolicy.chief.replicaIndex: is 2, but the job has 2 WORKER replicas: "
            "indexes begin at 0",
            id="chief out of range",
        ),
        pytest.param(
            {"terminationPolicy": {"chief": "WORKER"}},
            "spec.terminationPolicy.chief: must be an object, not 'WORKER'",
            id="chief as a string",
        ),
        pytest.param(
            {"replica_specs": []},
            "spec.replica_specs: is not a field: write replicaSpecs",
            id="snake case",
        ),
        pytest.param(
            {"replicaSpecs": None}, "spec.replicaSpecs: is missing: give a list", id="no list"
        ),
        pytest.param(
            {"replicaSpecs": {"Worker": {}}},
            "spec.replicaSpecs: must be a list, not {'Worker': {}}",
            id="map form",
        ),
    ],
)
def test_invalid_spec_field_is_rejected(spec: dict[str, Any], message: str) -> None:
    assert refusal(**spec) == message


def test_unlisted_chief_is_rejected() -> None:
    chief = {"chief": {"replicaName": "WORKER"}}
    assert refusal(entry("SCHEDULER"), terminationPolicy=chief) == (
        "spec.replicaSpecs: has no entry of type WORKER, which decides the job: add one, or name "
        "another in terminationPolicy"
    )


def test_local_job_without_a_worker_is_rejected() -> None:
    assert refusal(entry("SCHEDULER"), jobMode="local") == (
        "spec.jobMode: is local, which runs one WORKER, and replicaSpecs lists none: add it"
    )


def test_null_entry_is_rejected_like_an_empty_one() -> None:
    assert refusal(None) == "spec.replicaSpecs[0].template: is missing: give a pod template"


@pytest.mark.parametrize(
    ("pod", "at", "problem"),
    [
        pytest.param(None, "", "is missing: give a pod template", id="none"),
        pytest.param("x", "", "must be an object, not 'x'", id="string"),
        pytest.param({}, ".spec.containers", "is missing: give a list", id="no spec"),
        pytest.param(
            {"spec": {"containers": []}},
            ".spec.containers",
            "is empty: give a container",
            id="empty",
        ),
        pytest.param(
            {"spec": {"containers": [{"image": "x"}]}},
            ".spec.containers[0].name",
            "is missing: name the container",
            id="no name",
        ),
        pytest.param(
            {"spec": {"containers": [None]}},
            ".spec.containers[0].name",
            "is missing: name the container",
            id="null container",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "env": {"A": "1"}}]}},
            ".spec.containers[0].env",
            "must be a list, not {'A': '1'}: begin each item with a dash",
            id="environment as a map",
        ),
        pytest.param(
            {**template(), "metadata": "x"},
            ".metadata",
            "must be an object, not 'x'",
            id="metadata",
        ),
        pytest.param(
            {**template(), "metadata": {"labels": {"a": 1}}},
            ".metadata.labels[a]",
            "must be a string, not 1: put it in quotes",
            id="labels",
        ),
    ],
)
def test_template_without_valid_children_is_rejected(pod: Any, at: str, problem: str) -> None:
    assert refusal(entry("SCHEDULER", template=pod)) == (
        f"spec.replicaSpecs[0].template{at}: {problem}"
    )


def _container(**fields: Any) -> dict[str, Any]:
    return {"name": "mxnet", "image": "x", **fields}


_DATA = {"name": "data", "emptyDir": {}}


@pytest.mark.parametrize(
    ("pod", "at", "problem"),
    [
        pytest.param(
            {"containers": [_container(), _container(name="a"), _container()]},
            "containers[2].name",
            "is 'mxnet', as another container's is: change one of them",
            id="containers",
        ),
        pytest.param(
            {"initContainers": [_container()], "containers": [_container()]},
            "initContainers[0].name",
            "is 'mxnet', as another container's is: change one of them",
            id="init container",
        ),
        pytest.param(
            {"containers": [_container()], "volumes": [_DATA, _DATA]},
            "volumes[1].name",
            "is 'data', as another volume's is: change one of them",
            id="volumes",
        ),
        pytest.param(
            {
                "containers": [
                    _container(ports=[{"name": "a", "containerPort": 80 + n} for n in range(2)])
                ]
            },
            "containers[0].ports[1].name",
            "is 'a', as another port's is: change one of them",
            id="ports",
        ),
        pytest.param(
            {
                "containers": [_container()],
                "initContainers": [
                    _container(name="a"),
                    _container(
                        name="b",
                        volumeMounts=[{"name": "data", "mountPath": "/d"}] * 2,
                    ),
                ],
                "volumes": [_DATA],
            },
            "initContainers[1].volumeMounts[1].mountPath",
            "is '/d', as another volume mount's is: change one of them",
            id="mounts",
        ),
        pytest.param(
            {
                "containers": [
                    _container(volumeDevices=[{"name": "data", "devicePath": "/dev/d"}] * 2)
                ]
            },
            "containers[0].volumeDevices[1].devicePath",
            "is '/dev/d', as another volume device's is: change one of them",
            id="devices",
        ),
        pytest.param(
            {
                "containers": [_container()],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}] * 2,
            },
            "resourceClaims[1].name",
            "is 'gpu', as another resource claim's is: change one of them",
            id="claims",
        ),
    ],
)
def test_template_with_a_name_given_twice_is_rejected(pod: Any, at: str, problem: str) -> None:
    assert refusal(entry("SCHEDULER", template={"spec": pod})) == (
        f"spec.replicaSpecs[0].template.spec.{at}: {problem}"
    )


def test_template_with_the_same_names_in_different_places_is_accepted() -> None:
    ports: Any = [{"containerPort": 80}, {"containerPort": 80, "name": "a"}, {"containerPort": 81}]
    fields = {"ports": ports, "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    containers = [_container(**fields), _container(name="a", **fields)]
    pod = {"containers": containers, "volumes": [_DATA, {"name": "a", "emptyDir": {}}]}
    job = make_job(mxjob(replicaSpecs=[entry("SCHEDULER", template={"spec": pod})]))
    assert job.replica_specs[0].template["spec"] == {**pod, "restartPolicy": "OnFailure"}


def test_server_without_template_and_image_is_rejected() -> None:
    said = refusal(entry("SCHEDULER"), entry("SERVER", template=None))
    assert said == "spec.replicaSpecs[1].template: is missing: give a pod template"


@pytest.mark.parametrize("spec", [None, "x", 3, [{}]])
def test_spec_that_is_not_an_object_is_rejected(spec: Any) -> None:
    with pytest.raises(InvalidJobError, match=r"^spec"):
        make_job({**mxjob(), "spec": spec})


def test_long_quantity_is_rejected_without_being_calculated() -> None:
    wire = training_job("PyTorchJob", Worker=1)
    [replica] = wire["spec"]["pytorchReplicaSpecs"].values()

    def reject(digits: int) -> None:
        limits = {"cpu": "1" * digits}
        replica["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
        with pytest.raises(InvalidJobError, match="must be a quantity"):
            make_job(wire)

    assert cost_growth(reject, small=250_000) < 10

"""The contract of the extension point: required attributes and error messages."""

from typing import Any

import pytest

from dlctl.api.job import Replica
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.mxnet import MXJob
from tests.builders import make_job


def environment(self: DLJob, replica_spec: object, replica_index: int) -> dict[str, str]:
    return {}


def body(**changes: Any) -> dict[str, Any]:
    """Return the body of a class that keeps the contract but for the changes; None takes away."""
    whole = {
        "job_type": "RingJob",
        "replica_types": ["master", "worker"],
        "container_properties": {"ports": [7000]},
        "get_environment_variables": environment,
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def framework(**changes: Any) -> type[DLJob]:
    return type("Ring", (DLJob,), body(**changes))


@pytest.mark.parametrize(
    "name",
    ["job_type", "replica_types", "container_properties", "get_environment_variables"],
)
def test_subclass_that_lacks_a_part_fails_at_definition_and_names_it(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Ring needs the .* {name}"):
        framework(**{name: None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("job_type", "", id="empty job type"),
        pytest.param("job_type", "ring job", id="job type that is no kind"),
        pytest.param("replica_types", [], id="no replica types"),
        pytest.param("replica_types", "worker", id="replica types as one string"),
        pytest.param("replica_types", ["Worker"], id="upper-case replica type"),
        pytest.param("replica_types", ["tuner_server"], id="replica type that names no pod"),
        pytest.param("replica_types", [1], id="replica type that is no string"),
        pytest.param("replica_types", ["worker", "worker"], id="replica type twice"),
        pytest.param("container_properties", {}, id="no ports"),
        pytest.param("container_properties", {"ports": []}, id="empty ports"),
        pytest.param("container_properties", {"ports": "9091"}, id="ports as a string"),
        pytest.param("container_properties", {"ports": [0]}, id="port out of range"),
    ],
)
def test_subclass_with_a_malformed_part_fails_at_definition_and_names_it(
    name: str, value: Any
) -> None:
    with pytest.raises(TypeError, match=rf"Ring .*{name}"):
        framework(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("chief_type", "boss"), ("singletons", ["boss"])])
def test_subclass_that_names_an_unlisted_type_fails_at_definition(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"Ring .*{name} .*boss.*master"):
        framework(**{name: value})


def test_class_that_is_still_abstract_in_python_cannot_be_instantiated() -> None:
    with pytest.raises(TypeError, match="abstract"):
        DLJob(make_job())  # type: ignore[abstract]


def test_subclass_of_a_framework_inherits_what_it_does_not_restate() -> None:
    class Loud(MXJob):
        job_type = "LoudMXJob"

    assert Loud.default_chief() == Replica("scheduler", 0)
    assert Loud.default_port() == 9091


def test_container_is_named_after_the_kind_unless_stated() -> None:
    assert framework().container_name() == "ring"
    assert MXJob.container_name() == "mxnet"


def test_first_replica_type_decides_the_job_unless_stated() -> None:
    assert framework().default_chief() == Replica("master", 0)
    assert framework(chief_type="worker").default_chief() == Replica("worker", 0)


def test_framework_sees_the_shape_of_its_job() -> None:
    mxnet = MXJob(make_job(servers=3))
    spec = mxnet.get_replica_spec("server")
    assert spec is not None
    assert mxnet.number_of_replicas("server") == spec.replicas == 3
    assert mxnet.number_of_replicas("tuner") == 0
    assert mxnet.get_replica_spec("tuner") is None
    assert mxnet.port("tuner") == 9091

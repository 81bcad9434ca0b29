"""The names of children: stable and valid, or rejected with the fix."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.job import Replica, ReplicaSpec
from dlctl.api.json_types import JSON
from dlctl.api.meta import UID
from dlctl.dialects.child_names import MAX_LENGTH, check_names_with_runtime_id, runtime_id
from dlctl.errors import InvalidJobError
from tests.builders import bare_job, make_job, manifest, mxjob, training_job

WORKER = Replica("worker", 1)


@given(st.text())
def test_runtime_id_is_four_characters_that_depend_on_the_uid_alone(uid: str) -> None:
    identity = runtime_id(UID(uid))
    assert re.fullmatch(r"[0-9a-z]{4}", identity)
    assert runtime_id(UID(uid)) == identity


def test_child_is_named_after_job_type_runtime_id_and_index() -> None:
    assert make_job(RuntimeId="ab1c").child_name(WORKER) == "linear-worker-ab1c-1"


def test_long_job_name_is_truncated_to_forty_characters() -> None:
    job = make_job(mxjob(name="n" * 63, RuntimeId="ab1c"))
    assert job.child_name(WORKER) == f"{'n' * 40}-worker-ab1c-1"


@pytest.mark.parametrize("name", ["my.job", "1job", "-job", "job-", "Job"])
@pytest.mark.parametrize("build", [lambda n: mxjob(name=n), lambda n: bare_job("MXJob", n)])
def test_job_name_without_valid_service_names_is_rejected(
    build: Callable[[str], JSON], name: str
) -> None:
    with pytest.raises(InvalidJobError) as caught:
        make_job(build(name))
    assert str(caught.value) == (
        f"metadata.name: is {name!r}, but services are named after it: use lower-case letters, "
        "digits and '-', begin with a letter, and do not end with '-'"
    )


def test_job_name_that_is_no_label_value_is_rejected() -> None:
    with pytest.raises(InvalidJobError, match=r"metadata\.name: has 64 .* at most 63"):
        make_job(mxjob(name="n" * 64))


@pytest.mark.parametrize("identity", ["AYCW", "a_b", "-ab", "a.b"])
def test_runtime_id_without_valid_names_is_rejected(identity: str) -> None:
    with pytest.raises(InvalidJobError, match=rf"spec\.runtimeId: is {identity!r}.*lower-case"):
        make_job(runtimeId=identity)


def test_too_long_child_name_is_rejected_with_the_excess() -> None:
    wire = mxjob(name="n" * 40, RuntimeId="a" * 16)
    with pytest.raises(InvalidJobError) as caught:
        make_job(wire)
    assert caught.value.field == "spec.RuntimeId"
    assert "of 69 characters, and DNS allows 63: shorten it by 6" in str(caught.value)


def test_child_name_of_maximum_length_is_accepted() -> None:
    job = make_job(mxjob(name="n" * 40, RuntimeId="a" * 10))
    assert len(job.child_name(Replica("scheduler", 0))) == MAX_LENGTH


def test_index_counts_towards_the_limit() -> None:
    def specs(replicas: int) -> list[ReplicaSpec]:
        return [ReplicaSpec("worker", replicas, {}, "mxnet", 9091)]

    check_names_with_runtime_id("n" * 40, "a" * 11, specs(1000), "spec.RuntimeId")
    with pytest.raises(InvalidJobError, match=r"-worker-a{11}-1000'.*shorten it by 1"):
        check_names_with_runtime_id("n" * 40, "a" * 11, specs(1001), "spec.RuntimeId")


def test_manifest_without_a_name_is_rejected() -> None:
    with pytest.raises(InvalidJobError, match=r"metadata\.name"):
        make_job(manifest("kubeflow.org/v1alpha1", "MXJob", mxjob()["spec"], name=""))


@pytest.mark.parametrize("name", ["resnet.v1.5", "3d-unet", "n" * 63])
def test_job_without_services_can_have_any_label_value_as_name(name: str) -> None:
    make_job(training_job("MPIJob", name, Launcher=1, Worker=9_999))


def test_job_without_services_needs_a_label_value_as_name() -> None:
    with pytest.raises(InvalidJobError, match="of 64 characters"):
        make_job(training_job("MPIJob", "n" * 64, Launcher=1))

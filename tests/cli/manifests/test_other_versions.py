"""Fields of another version of a kind are named, with the version that has them."""

from typing import Any

import pytest

from tests.builders import manifest
from tests.mpi_v2beta1 import mpi_job
from tests.support.command_line import Dlctl, Written


@pytest.mark.parametrize(
    ("version", "fields", "said"),
    [
        pytest.param(
            "v2beta1",
            {"cleanPodPolicy": "All"},
            "'cleanPodPolicy': it is a field of v1, or write it in spec.runPolicy",
            id="policy of v1",
        ),
        pytest.param(
            "v2beta1", {"mainContainer": "a"}, "'mainContainer': it is a field of v1", id="of v1"
        ),
        pytest.param(
            "v1",
            {"mpiImplementation": "Intel"},
            "spec.mpiImplementation: Invalid value: is a field of v2beta1: write apiVersion "
            "kubeflow.org/v2beta1",
            id="of v2beta1",
        ),
        pytest.param(
            "v1",
            {"gpus": 1},
            "spec.gpus: Invalid value: is a field of v1alpha1, where spec.template is: remove it",
            id="of v1alpha1",
        ),
    ],
)
def test_field_of_another_version_is_named(
    version: str, fields: dict[str, Any], said: str, dlctl: Dlctl, written: Written
) -> None:
    job = mpi_job(**fields)
    del job["spec"]["sshAuthMountPath"]
    path = written({**job, "apiVersion": f"kubeflow.org/{version}"})
    done = dlctl("render", path)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("MPIJob pi:") == 1


def test_fields_of_other_versions_are_not_suggested(dlctl: Dlctl, written: Written) -> None:
    """v1alpha1 has a jobPriority."""
    done = dlctl("render", written(mpi_job(priority="high")))
    assert done.err.rstrip().endswith("unknown field 'priority'")


def test_version_of_an_exported_job_is_asked_for(dlctl: Dlctl, written: Written) -> None:
    """What the old server recorded does not survive a create."""
    job = {
        **mpi_job(),
        "apiVersion": "kubeflow.org/v1",
        "status": {"dlctl": {"version": "v2beta1"}},
    }
    job["spec"]["sshAuthMountPath"] = "/root/.ssh"
    job["metadata"] |= {"uid": "a", "resourceVersion": "1"}
    done = dlctl("check", written(job))
    assert done.code == 1
    assert "the spec was written as v1, but has sshAuthMountPath" in done.out


def test_annotation_that_names_no_version_is_reported(dlctl: Dlctl, written: Written) -> None:
    job = mpi_job()
    job["metadata"]["annotations"] = {"dlctl.dev/mpijob-version": "v2"}
    done = dlctl("render", written(job))
    assert done.code == 2
    assert "is 'v2', but must be v1 or v2beta1" in done.err


@pytest.mark.parametrize("spec", [{}, {"replicas": 2}], ids=["empty", "replicas"])
def test_missing_field_is_that_of_the_manifests_version(
    spec: dict[str, Any], dlctl: Dlctl, written: Written
) -> None:
    job = manifest("kubeflow.org/v1alpha1", "MPIJob", spec)
    del job["metadata"]["uid"]
    done = dlctl("check", written(job))
    assert done.code == 1
    assert "spec.template" in done.out
    assert "remove it" not in done.out
    assert "mpiReplicaSpecs" not in done.out


_SPECS = {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}


@pytest.mark.parametrize(
    ("version", "spec", "operator"),
    [
        pytest.param("", {"sshAuthMountPath": "/ssh", **_SPECS}, "mpi-operator", id="v2beta1"),
        pytest.param(
            "", {"sshAuthMountPath": "/ssh", "template": {}, **_SPECS}, "mpi-operator", id="both"
        ),
        pytest.param("v2beta1", _SPECS, "mpi-operator", id="annotation"),
        pytest.param("", {"template": {}}, "mpi-operator v1alpha1", id="v1alpha1"),
        pytest.param("", _SPECS, "Kubeflow training-operator v1", id="v1"),
    ],
)
def test_operator_is_that_of_the_form_in_which_an_mpi_job_is_read(
    dlctl: Dlctl, written: Written, version: str, spec: dict[str, Any], operator: str
) -> None:
    job = manifest("kubeflow.org/v1", "MPIJob", spec)
    if version:
        job["metadata"]["annotations"] = {"dlctl.dev/mpijob-version": version}
    assert f"written for: {operator} (" in dlctl("check", written(job)).out

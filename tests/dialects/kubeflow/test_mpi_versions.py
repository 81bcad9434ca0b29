"""The version that an MPIJob is meant in, by what API servers wrote into ``managedFields``.

The entries are those of Kubernetes 1.36 after the requests that the ids name.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import VersionChoice
from dlctl.dialects.kubeflow.mpi_v2beta1.spec_authors import MPIJobObject
from dlctl.dialects.kubeflow.mpi_v2beta1.version_choice import choose_version
from tests.builders import template

V2BETA1_FIELDS: JSON = {
    "sshAuthMountPath": "/root/.ssh",
    "slotsPerWorker": 1,
    "mpiImplementation": "OpenMPI",
    "runLauncherAsWorker": False,
    "launcherCreationPolicy": "AtStartup",
}
# Fields of an entry: of the creator, of one that applied on the server, of Kueue's update.
WHOLE: JSON = {".": {}, "f:mpiReplicaSpecs": {".": {}, "f:Worker": {".": {}, "f:replicas": {}}}}
WHOLE_WITH_FORM_FIELD: JSON = {**WHOLE, "f:sshAuthMountPath": {}, "f:slotsPerWorker": {}}
APPLIED: JSON = {"f:mpiReplicaSpecs": {"f:Worker": {".": {}, "f:replicas": {}}}}
APPLIED_WITH_FORM_FIELD: JSON = {**APPLIED, "f:sshAuthMountPath": {}}
PART: JSON = {
    "f:mpiReplicaSpecs": {"f:Worker": {"f:template": {"f:spec": {"f:nodeSelector": {".": {}}}}}},
    "f:runPolicy": {"f:suspend": {}},
}
V1, V2BETA1, UNKNOWN = "", "v2beta1", "unknown"


def entry(version: str, spec: JSON | None = None, operation: str = "Update", **more: str) -> JSON:
    """Return an entry of ``managedFields``, of a manager that matters to nobody."""
    fields = {"f:metadata": {"f:labels": {}}} if spec is None else {"f:spec": spec}
    types = {"manager": "m", "operation": operation, "apiVersion": f"kubeflow.org/{version}"}
    return {**types, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def choice(
    entries: list[JSON],
    spec: Mapping[str, Any],
    *,
    version: str = "v1",
    uid: str = "u",
    annotations: JSON | None = None,
    status: JSON | None = None,
) -> VersionChoice:
    """Return the choice for a job as it is read in a version."""
    meta = {"name": "pi", "uid": uid, "managedFields": entries, "annotations": annotations}
    wire = {
        "apiVersion": f"kubeflow.org/{version}",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }
    return choose_version(msgspec.json.decode(msgspec.json.encode(wire), type=MPIJobObject), spec)


def job_spec(**fields: Any) -> JSON:
    specs = {type_: {"template": template("mpi")} for type_ in ("Launcher", "Worker")}
    return {"mpiReplicaSpecs": specs, **fields}


def chosen(entries: list[JSON], spec: Mapping[str, Any], **fields: Any) -> str:
    found = choice(entries, spec, **fields)
    return UNKNOWN if found.problem else found.version


STATUS = entry("v2beta1", subresource="status")


@pytest.mark.parametrize(
    ("entries", "marked", "expected"),
    [
        pytest.param([entry("v1", WHOLE)], False, V1, id="v1 created"),
        pytest.param([entry("v1", APPLIED, "Apply")], False, V1, id="v1 applied on the server"),
        pytest.param(
            [entry("v2beta1", WHOLE_WITH_FORM_FIELD)], True, V2BETA1, id="v2beta1 created"
        ),
        pytest.param(
            [entry("v2beta1", APPLIED, "Apply")], True, V2BETA1, id="v2beta1 applied on the server"
        ),
        pytest.param([entry("v1", WHOLE)], True, V1, id="v1 created, marked by a webhook"),
        pytest.param(
            [entry("v1", APPLIED, "Apply")], True, V1, id="v1 applied, marked by a webhook"
        ),
        pytest.param(
            [entry("v1", WHOLE), entry("v2beta1", PART)], True, V1, id="v1 admitted by Kueue"
        ),
        pytest.param(
            [entry("v1", WHOLE), entry("v2beta1", {"f:sshAuthMountPath": {}})],
            True,
            V1,
            id="v1 labelled via v2beta1",
        ),
        pytest.param(
            [entry("v2beta1", WHOLE_WITH_FORM_FIELD), entry("v1", PART), entry("v2beta1", PART)],
            True,
            V2BETA1,
            id="v2beta1 edited by kubectl, which prefers v1",
        ),
        pytest.param(
            [entry("v2beta1", WHOLE_WITH_FORM_FIELD), *[entry("v1")] * 9],
            True,
            V2BETA1,
            id="v2beta1 labelled often",
        ),
        pytest.param([entry("v1", WHOLE), STATUS], False, V1, id="status written via v2beta1"),
        pytest.param([], True, V2BETA1, id="managed fields cleared, marked"),
        pytest.param([], False, V1, id="managed fields cleared, unmarked"),
        pytest.param(
            [entry("v1", WHOLE_WITH_FORM_FIELD)], True, UNKNOWN, id="exported, then created as v1"
        ),
        pytest.param(
            [entry("v1", APPLIED_WITH_FORM_FIELD, "Apply")],
            True,
            UNKNOWN,
            id="exported, then applied",
        ),
        pytest.param(
            [entry("v2beta1", WHOLE_WITH_FORM_FIELD), entry("v1", APPLIED, "Apply")],
            True,
            UNKNOWN,
            id="v2beta1 created, v1 applied over it",
        ),
        pytest.param(
            [entry("v1", WHOLE), entry("v2beta1", APPLIED, "Apply")],
            True,
            UNKNOWN,
            id="v1 created, v2beta1 applied over it",
        ),
    ],
)
def test_version_is_that_of_the_request_that_wrote_the_replica_specs(
    entries: list[JSON], marked: bool, expected: str
) -> None:
    assert chosen(entries, job_spec(**V2BETA1_FIELDS) if marked else job_spec()) == expected


EXPORTED = [entry("v1", WHOLE_WITH_FORM_FIELD)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mpiImplementation": "Intel"}, V2BETA1),
        ({"runLauncherAsWorker": True}, V2BETA1),
        ({"sshAuthMountPath": "/home/mpiuser/.ssh"}, V2BETA1),
        ({"launcherCreationPolicy": "WaitForWorkersReady"}, V2BETA1),
        ({"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}, V2BETA1),
        ({"runPolicy": {"managedBy": "kubeflow.org/training-operator"}}, V1),
        ({"mainContainer": "mpi"}, V1),
        ({"cleanPodPolicy": "All"}, V1),
        ({"mpiReplicaSpecs": {"Worker": {"restartPolicy": "ExitCode"}}}, V1),
        ({"mpiReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}}, UNKNOWN),
        ({"mainContainer": "mpi", "mpiImplementation": "Intel"}, UNKNOWN),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value or "v1",
)
def test_exported_job_has_the_version_that_alone_has_one_of_its_fields(
    fields: JSON, expected: str
) -> None:
    assert chosen(EXPORTED, job_spec(**{**V2BETA1_FIELDS, **fields})) == expected


@pytest.mark.parametrize(("given", "expected"), [("v1", V1), ("v2beta1", V2BETA1)])
def test_annotated_version_takes_precedence_over_the_fields(given: str, expected: str) -> None:
    annotations = {"dlctl.dev/mpijob-version": given}
    for entries in (EXPORTED, [entry("v1", WHOLE)], [entry("v2beta1", WHOLE_WITH_FORM_FIELD)]):
        assert chosen(entries, job_spec(**V2BETA1_FIELDS), annotations=annotations) == expected


def test_unknown_version_in_the_annotation_is_reported() -> None:
    annotations = {"dlctl.dev/mpijob-version": "v2"}
    found = choice([entry("v1", WHOLE)], job_spec(), annotations=annotations)
    assert found.problem == (
        "metadata.annotations[dlctl.dev/mpijob-version] is 'v2', but must be v1 or v2beta1"
    )


def test_recorded_version_stays_whatever_is_written_later() -> None:
    later = [entry("v1", APPLIED_WITH_FORM_FIELD, "Apply")]
    recorded = {"dlctl": {"phase": "Running", "version": "v2beta1"}}
    annotations = {"dlctl.dev/mpijob-version": "v1"}
    assert (
        chosen(later, job_spec(**V2BETA1_FIELDS), status=recorded, annotations=annotations)
        == V2BETA1
    )
    recorded["dlctl"]["version"] = "v1"
    assert (
        chosen(
            [entry("v2beta1", WHOLE_WITH_FORM_FIELD)], job_spec(**V2BETA1_FIELDS), status=recorded
        )
        == V1
    )


def test_recorded_v1alpha1_stays_one_of_the_versions_that_differ_by_shape() -> None:
    status = {"dlctl": {"version": "v1alpha1"}}
    assert (
        chosen([entry("v2beta1", WHOLE_WITH_FORM_FIELD)], job_spec(**V2BETA1_FIELDS), status=status)
        == V1
    )


@pytest.mark.parametrize(
    "status", [None, [], {"dlctl": 1}, {"dlctl": {"version": 7}}, {"dlctl": {"version": "v9"}}]
)
def test_status_without_a_known_version_decides_nothing(status: Any) -> None:
    assert (
        chosen([entry("v2beta1", WHOLE_WITH_FORM_FIELD)], job_spec(**V2BETA1_FIELDS), status=status)
        == V2BETA1
    )


@pytest.mark.parametrize(
    ("version", "marked", "expected"),
    [("v1", False, V1), ("v2beta1", False, V2BETA1), ("v2beta1", True, V2BETA1)],
)
def test_manifest_is_of_its_own_version(version: str, marked: bool, expected: str) -> None:
    spec = job_spec(**V2BETA1_FIELDS) if marked else job_spec()
    assert chosen([], spec, version=version, uid="") == expected


def test_manifest_of_v1_with_fields_of_v2beta1_is_reported_before_it_is_sent() -> None:
    found = choice([], job_spec(**V2BETA1_FIELDS), uid="")
    assert found.problem == (
        "the spec was written as v1, but has sshAuthMountPath, as jobs of v2beta1 have: "
        "write apiVersion kubeflow.org/v2beta1, or remove the fields that only v2beta1 has"
    )


def test_jobs_share_what_is_kept_of_managed_fields() -> None:
    wire = {"metadata": {"name": "a", "managedFields": [entry("v2beta1", WHOLE_WITH_FORM_FIELD)]}}
    raw = msgspec.json.encode(wire)
    one, other = (msgspec.json.decode(raw, type=MPIJobObject).metadata for _ in range(2))
    assert one.managed_fields is None
    assert one.authors is other.authors is not None

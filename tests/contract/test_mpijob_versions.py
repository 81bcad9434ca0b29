"""v1 and v2beta1 of MPIJob on one CRD: neither version drops or changes what the other one has."""

from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import VersionChoice
from dlctl.dialects.kubeflow.mpi_v2beta1.spec_authors import MPIJobObject
from dlctl.dialects.kubeflow.mpi_v2beta1.version_choice import choose_version
from tests.contract.api import CRDS, Api
from tests.contract.definitions import definition
from tests.contract.field_managers import APPLY
from tests.contract.jobs import definition_of, job, policy
from tests.local.apiserver.raw_client import Answer

FORM_FIELD = "sshAuthMountPath"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@attrs.frozen
class Jobs:
    """MPIJobs on one server."""

    api: Api

    def path(self, version: str, name: str = "") -> str:
        return self.api.path("mpijobs", name, group=f"kubeflow.org/{version}")

    def wire(self, version: str, change: JSON | None = None, name: str = "a") -> JSON:
        wire = job("MPIJob", change, {"Launcher": 1, "Worker": 2}, name)
        return {**wire, "apiVersion": f"kubeflow.org/{version}"}

    async def create(self, version: str, change: JSON | None = None, name: str = "a") -> JSON:
        return await self.api.create(self.path(version), self.wire(version, change, name))

    async def refusal(self, version: str, change: JSON) -> str:
        answer = await self.api.post(self.path(version), self.wire(version, change))
        return "" if answer.code < 300 else self.api.failure_text(answer)

    async def patch(self, version: str, spec: JSON, *, to: str = "a", **params: Any) -> Answer:
        return await self.api.patch(self.path(version, to), {"spec": spec}, **params)

    async def stored(self, name: str = "a") -> JSON:
        body: JSON = (await self.api.get(self.path("v1", name))).body
        return body

    async def choice(self, name: str = "a") -> VersionChoice:
        """Return the version that a controller chooses for a job as it is stored."""
        wire = await self.stored(name)
        obj = msgspec.json.decode(msgspec.json.encode(wire), type=MPIJobObject)
        return choose_version(obj, wire["spec"])


def message(answer: Answer) -> str:
    if answer.code < 300:
        return ""
    assert answer.code == 422, answer.body
    return str(answer.body["message"])


@pytest.fixture
async def jobs(api: Api) -> Jobs:
    await api.define(definition_of("MPIJob"))
    return Jobs(api)


async def test_each_version_is_told_from_the_other(jobs: Jobs) -> None:
    for version, expected in (("v1", ""), ("v1alpha2", ""), ("v2beta1", "v2beta1")):
        await jobs.create(version, name=f"created-{version}")
        wire = jobs.wire(version, name=f"applied-{version}")
        path = jobs.path(version, f"applied-{version}")
        assert (await jobs.api.patch(path, wire, APPLY, fieldManager="me")).code == 201
        for name in (f"created-{version}", f"applied-{version}"):
            assert (await jobs.choice(name)) == VersionChoice(expected)
            assert (FORM_FIELD in (await jobs.stored(name))["spec"]) == bool(expected)


async def test_edits_through_the_other_version_change_no_meaning(jobs: Jobs) -> None:
    await jobs.create("v2beta1")
    suspended = await jobs.patch("v1", policy(suspend=True), fieldManager="kubectl-edit")
    assert suspended.code == 200
    assert await jobs.choice() == VersionChoice("v2beta1")


async def test_update_that_drops_fields_of_the_other_version_is_rejected(jobs: Jobs) -> None:
    created = await jobs.create("v2beta1", {"runLauncherAsWorker": True})
    sent = {**created, **jobs.wire("v1"), "metadata": created["metadata"]}
    assert "jobs of v2beta1 have this field" in message(
        await jobs.api.put(jobs.path("v1", "a"), sent)
    )
    own = await jobs.create("v1", {"mainContainer": "mpi", FORM_FIELD: "/x"}, name="b")
    sent = {**own, **jobs.wire("v2beta1", name="b"), "metadata": own["metadata"]}
    assert "change this job through kubeflow.org/v1" in message(
        await jobs.api.put(jobs.path("v2beta1", "b"), sent)
    )


async def test_job_of_v1_does_not_become_one_of_v2beta1(jobs: Jobs) -> None:
    await jobs.create("v1")
    refused = await jobs.patch("v2beta1", {"runLauncherAsWorker": True})
    assert "this job was created as v1, and stays one" in message(refused)
    assert await jobs.choice() == VersionChoice()


async def test_patch_of_a_marked_job_through_v2beta1_keeps_the_fields_of_v1(jobs: Jobs) -> None:
    fields = {"mainContainer": "mpi", "cleanPodPolicy": "All", "backoffLimit": 3, FORM_FIELD: "/x"}
    await jobs.create("v1", fields)
    assert (await jobs.patch("v2beta1", policy(suspend=True))).code == 200
    spec = (await jobs.stored())["spec"]
    assert {name: spec[name] for name in fields} == fields


@pytest.mark.parametrize(
    ("version", "change", "said"),
    [
        ("v1", {"mpiImplementation": "Intel"}, "is a field of v2beta1"),
        ("v1", {"runLauncherAsWorker": False}, "is a field of v2beta1"),
        ("v1", {"launcherCreationPolicy": "AtStartup"}, "is a field of v2beta1"),
        ("v1", policy(managedBy="kubeflow.org/mpi-operator"), "is the controller of v2beta1"),
        ("v1", policy(managedBy=MULTIKUEUE), "MultiKueue copies MPIJobs as v2beta1"),
        ("v1", {"slotsPerWorker": 0}, "must be 1 or more"),
        ("v2beta1", {"mpiImplementation": "LAM"}, "Unsupported value"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else next(iter(value)),
)
async def test_fields_of_the_other_version_are_rejected(
    jobs: Jobs, version: str, change: JSON, said: str
) -> None:
    assert said in await jobs.refusal(version, change)


@pytest.mark.parametrize(
    "change",
    [
        {"mpiImplementation": "Intel", "slotsPerWorker": 0, "launcherCreationPolicy": "Later"},
        policy(managedBy="kubeflow.org/mpi-operator", suspend=True),
        policy(managedBy=MULTIKUEUE),
        {"template": {"spec": {"containers": [{"name": "mpi", "image": "any"}]}}, "gpus": 1},
        {"launcherResources": {"a": 1}},
    ],
    ids=["fields", "managed by mpi-operator", "managed by MultiKueue", "template", "resources"],
)
async def test_job_of_v2beta1_can_be_edited_through_v1(jobs: Jobs, change: JSON) -> None:
    await jobs.create("v2beta1", change)
    edit = {"metadata": {"labels": {"a": "b"}}, "spec": {"runLauncherAsWorker": True}}
    assert (await jobs.api.patch(jobs.path("v1", "a"), edit)).code == 200
    status = {"status": {"conditions": [], "dlctl": {"version": "v2beta1"}}}
    assert (await jobs.api.patch(jobs.path("v1", "a/status"), status)).code == 200
    assert await jobs.choice() == VersionChoice("v2beta1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mpiReplicaSpecs": None}, "mpiReplicaSpecs is missing"),
        ({"template": {"spec": {}}}, "mpiReplicaSpecs have templates of their own"),
        ({"gpus": 8}, "is a field of v1alpha1"),
    ],
    ids=["none", "both", "units"],
)
async def test_job_has_replica_specs_or_one_template(jobs: Jobs, change: JSON, said: str) -> None:
    assert said in await jobs.refusal("v1", change)


@pytest.mark.parametrize(
    ("version", "field"), [("v1alpha1", "template"), ("v1", "mpiReplicaSpecs")]
)
async def test_empty_spec_lacks_the_field_of_its_version(
    jobs: Jobs, version: str, field: str
) -> None:
    said = await jobs.refusal(version, {"mpiReplicaSpecs": None})
    assert f"Invalid value: {field} is missing" in said


async def test_job_of_v1alpha1_cannot_be_edited_through_v2beta1(jobs: Jobs) -> None:
    """As it has no replica specs, which v2beta1 requires."""
    spec = {"template": job("MPIJob")["spec"]["mpiReplicaSpecs"]["Worker"]["template"]}
    wire = {**jobs.wire("v1alpha1"), "spec": spec}
    await jobs.api.create(jobs.path("v1alpha1"), wire)
    assert "spec.mpiReplicaSpecs: Required value" in message(await jobs.patch("v2beta1", {}))
    assert (await jobs.stored())["spec"] == spec
    assert await jobs.choice() == VersionChoice()


async def test_version_of_an_exported_job_is_unknown_until_it_is_annotated(jobs: Jobs) -> None:
    exported = await jobs.create("v2beta1")
    await jobs.api.delete(jobs.path("v1", "a"))
    again = {**jobs.wire("v1"), "spec": exported["spec"]}
    await jobs.api.create(jobs.path("v1"), again)
    assert "say which version is meant" in (await jobs.choice()).problem
    annotated = {"metadata": {"annotations": {"dlctl.dev/mpijob-version": "v2beta1"}}}
    assert (await jobs.api.patch(jobs.path("v1", "a"), annotated)).code == 200
    assert await jobs.choice() == VersionChoice("v2beta1")


async def test_jobs_stored_under_the_crd_of_mpi_operator_stay_of_v2beta1(api: Api) -> None:
    """Its CRD has one version, which is stored."""
    jobs, ours = Jobs(api), definition_of("MPIJob")
    versions = {version["name"]: version for version in ours["spec"]["versions"]}
    group = f"{api.namespace}.dlctl.dev"
    former = definition("mpijobs", group=group, versions=[{**versions["v2beta1"], "storage": True}])
    former["spec"]["names"] |= {"kind": "MPIJob", "listKind": "MPIJobList"}
    await api.define(former)
    wire = {**jobs.wire("v2beta1"), "apiVersion": f"{group}/v2beta1"}
    await api.create(api.path("mpijobs", group=f"{group}/v2beta1"), wire)
    both = {"spec": {"versions": [versions["v1"], versions["v2beta1"]]}}
    crd = f"{CRDS}/{former['metadata']['name']}"
    assert (await api.patch(crd, both)).code == 200

    path = api.path("mpijobs", "a", group=f"{group}/v1")
    found = await api.wait_until(path, lambda answer: answer.code == 200)

    obj = msgspec.json.decode(msgspec.json.encode(found.body), type=MPIJobObject)
    assert choose_version(obj, found.body["spec"]) == VersionChoice("v2beta1")
    status = await api.patch(f"{path}/status", {"status": {"dlctl": {"version": "v2beta1"}}})
    assert status.code == 200
    assert set((await api.get(crd)).body["status"]["storedVersions"]) == {"v1", "v2beta1"}
    await api.delete(crd)

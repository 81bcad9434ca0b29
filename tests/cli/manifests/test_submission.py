from collections.abc import AsyncIterator
from typing import Any

import pytest

from dlctl.api.meta import CONFIG_MAPS, CRDS, NAMESPACES, Object, ObjectKey
from dlctl.cli.manifests.loading import Manifest
from dlctl.cli.manifests.submission import submit
from dlctl.dialects.kind_crds import job_crd
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.server import serve
from tests.builders import KINDS, kind_of, mxjob

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}}
JOB: dict[str, Any] = {**mxjob(), "metadata": {"name": "linear"}}


def manifests(*objects: dict[str, Any]) -> list[Manifest]:
    return [Manifest(obj) for obj in objects]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with (
        serve(tls=False) as server,
        Client(ClusterConfig.with_token(server.url, server.token)) as client,
    ):
        for kind in KINDS:
            await client.create(CRDS, "", job_crd(kind))
        yield client


async def test_objects_without_a_namespace_get_the_given_one(client: Client) -> None:
    (job,) = await submit(client, KINDS, manifests(JOB, CONFIG), "lab")
    assert job.key == ObjectKey("lab", "linear")
    config = ObjectKey("lab", "script")
    assert (await client.get(CONFIG_MAPS, config, Object)).key == config


async def test_missing_namespace_of_a_manifest_is_created(client: Client) -> None:
    (job,) = await submit(client, KINDS, manifests(mxjob()), "default")
    assert job.key == ObjectKey("ml", "linear")
    namespace = ObjectKey("", "ml")
    assert (await client.get(NAMESPACES, namespace, Object)).key == namespace


async def test_server_can_generate_the_name(client: Client) -> None:
    unnamed = {**JOB, "metadata": {"generateName": "linear-"}}
    (job,) = await submit(client, KINDS, manifests(unnamed), "default")
    assert job.key.name.startswith("linear-")


async def test_own_crds_in_the_manifest_are_accepted(client: Client) -> None:
    (job,) = await submit(client, KINDS, manifests(job_crd(kind_of()), JOB), "default")
    assert job.kind == kind_of()


async def test_exported_objects_are_created_as_new_ones(client: Client) -> None:
    exported = {"resourceVersion": "12", "uid": "a-b", "creationTimestamp": "2026-01-01T00:00:00Z"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "lab", **exported},
        "status": {"phase": "Terminating"},
    }
    job = {**JOB, "metadata": {"name": "linear", **exported}}
    (submitted,) = await submit(client, KINDS, manifests(namespace, job), "lab")
    assert submitted.key == ObjectKey("lab", "linear")
    created = await client.get(NAMESPACES, ObjectKey("", "lab"), dict[str, Any])
    assert created["metadata"]["uid"] != "a-b"
    assert created["status"]["phase"] == "Active"


async def test_duplicate_object_is_rejected(client: Client) -> None:
    with pytest.raises(ConfigError, match=r"ConfigMap script is rejected: .*already exists"):
        await submit(client, KINDS, manifests(CONFIG, CONFIG, JOB), "default")


async def test_unserved_kind_is_named(client: Client) -> None:
    poem = {"apiVersion": "verse.org/v1", "kind": "Poem", "metadata": {"name": "ode"}}
    with pytest.raises(
        ConfigError,
        match=r"Poem ode: the cluster does not serve kind Poem in verse.org/v1: leave it out",
    ):
        await submit(client, KINDS, manifests(poem), "default")

"""What the server says that it serves."""

import pytest

from dlctl.kube.client import Client
from dlctl.kube.discovery import APIResource, served_resources, served_version
from dlctl.kube.errors import UnexpectedResponseError
from tests.kube.scripted_server import Server, fails, replies

JOBS = {"name": "jobs", "kind": "Job", "namespaced": True}


async def test_resources_of_a_version_are_without_subresources(
    client: Client, server: Server
) -> None:
    server.handlers.append(replies({"resources": [JOBS, JOBS | {"name": "jobs/status"}]}))
    assert await served_resources(client, "batch/v1") == (APIResource("jobs", "Job", True),)
    assert await served_resources(client, "v1")
    assert [request.path for request in server.seen] == ["/apis/batch/v1", "/api/v1"]


async def test_absent_group_serves_nothing(client: Client, server: Server) -> None:
    server.handlers.append(fails(404, "NotFound"))
    assert await served_resources(client, "batch/v1") == ()
    assert await served_version(client, "batch", ["v1"]) == ""


@pytest.mark.parametrize(
    "body", [b"<html>sign in</html>", b"\xff", b"[]", b'{"resources": 1, "versions": 1}']
)
async def test_other_answers_are_errors_of_the_server(
    client: Client, server: Server, body: bytes
) -> None:
    server.handlers.append(replies(body))
    with pytest.raises(UnexpectedResponseError):
        await served_resources(client, "batch/v1")
    with pytest.raises(UnexpectedResponseError):
        await served_version(client, "batch", ["v1"])

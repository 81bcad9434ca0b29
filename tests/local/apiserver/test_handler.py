import base64
import json
import ssl

import aiohttp
import pytest

from dlctl.api.meta import NAMESPACES, Object, ObjectKey
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import ApiServer, serve
from tests.local.apiserver.raw_client import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    RawClient,
    config_map,
    widget,
)
from tests.support.raw_http import send_raw


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_request_without_the_token_is_unauthorized(
    server: ApiServer, headers: dict[str, str]
) -> None:
    async with (
        aiohttp.ClientSession(server.url, headers=headers) as session,
        session.get(PODS) as response,
    ):
        assert response.status == 401
        assert await response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


async def test_too_long_a_request_line_is_refused_and_not_logged(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.get("/version", params={"a": "b" * 70_000}) as response,
    ):
        assert response.status == 400
    assert caplog.records == []


@pytest.mark.parametrize(("is_known", "code"), [(True, 400), (False, 401)])
async def test_body_that_is_not_compressed_as_it_says_is_refused_and_not_logged(
    server: ApiServer, caplog: pytest.LogCaptureFixture, is_known: bool, code: int
) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    if is_known:
        headers["Authorization"] = f"Bearer {server.token}"
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.post(CONFIG_MAPS, data=b"abcde", headers=headers) as response,
    ):
        assert response.status == code
    assert caplog.records == []


@pytest.mark.parametrize(
    ("header", "code"),
    [
        pytest.param(b"Authorization: Bearer \xff", 401, id="token"),
        pytest.param(b"Authorization: Bearer a.b.\xff", 401, id="signature"),
        pytest.param(b"Authorization: \xff", 401, id="kind of credentials"),
        pytest.param(b"Impersonate-User: \xff", 403, id="user"),
        pytest.param(b"Accept: \xff", 406, id="media type"),
        pytest.param(b"User-Agent: \xff", 200, id="user agent"),
    ],
)
async def test_header_that_is_not_text_is_no_error_of_the_server(
    server: ApiServer, caplog: pytest.LogCaptureFixture, header: bytes, code: int
) -> None:
    headers = [header]
    if not header.startswith(b"Authorization"):
        headers.append(f"Authorization: Bearer {server.token}".encode())
    found, body = await send_raw(server.url, f"GET {PODS}".encode(), *headers)
    assert found == json.loads(body).get("code", 200) == code
    assert caplog.records == []


async def test_user_agent_that_is_not_text_manages_fields(api: RawClient) -> None:
    path, applied = f"{CONFIG_MAPS}/a", {"apiVersion": "v1", "kind": "ConfigMap"}
    await api.patch(
        path,
        applied | config_map("a"),
        "application/apply-patch+yaml",
        fieldManager="first",
    )
    headers = [
        f"Authorization: Bearer {api.server.token}".encode(),
        b"User-Agent: a\xff/1",
        b"Content-Type: application/merge-patch+json",
    ]
    code, body = await send_raw(
        api.server.url, f"PATCH {path}".encode(), *headers, body=b'{"data":{"more":"v"}}'
    )
    assert code == 200
    managers = [entry["manager"] for entry in json.loads(body)["metadata"]["managedFields"]]
    assert managers == ["first", "a\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize(
    "validation", ["", pytest.param("Strict", id="with a check for repeated fields")]
)
async def test_bytes_of_a_body_that_are_not_text_are_replaced(
    widgets: RawClient, validation: str
) -> None:
    text = json.dumps(widget("a", spec={"text": "?"})).encode()
    answer = await widgets.post(
        WIDGETS, text.replace(b"?", b"\xff"), fieldValidation=validation or "Ignore"
    )
    assert (answer.code, answer.body["spec"]) == (201, {"text": "\N{REPLACEMENT CHARACTER}"})
    patch = b'{"spec": {"text": "a\xff"}}'
    answer = await widgets.patch(f"{WIDGETS}/a", patch, fieldValidation=validation or "Ignore")
    assert answer.body["spec"] == {"text": "a\N{REPLACEMENT CHARACTER}"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
async def test_health_and_version_need_no_token(server: ApiServer, path: str) -> None:
    async with aiohttp.ClientSession(server.url) as session, session.get(path) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/things",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/a/nothing",
    ],
)
async def test_unknown_path_is_not_found(api: RawClient, path: str) -> None:
    answer = await api.get(path)
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/api/v2/pods",
        "/apis/none.io/v1/things",
        "/api/v1/namespaces/default/pods/a/status/more",
    ],
)
async def test_path_of_an_unserved_group_is_a_plain_text_404(api: RawClient, path: str) -> None:
    answer = await api.get(path)
    assert (answer.code, answer.body) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("POST", "/api/v1/pods", id="create in all namespaces"),
        pytest.param("PUT", PODS, id="update of a collection"),
        pytest.param("POST", f"{PODS}/a", id="create of a named object"),
        pytest.param("DELETE", f"{PODS}/a/status", id="delete of a status"),
    ],
)
async def test_unsupported_method_is_not_allowed(api: RawClient, method: str, path: str) -> None:
    answer = await api.call(method, path, {})
    assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_requests_are_counted_by_user_agent_verb_and_resource(api: RawClient) -> None:
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.get(CONFIG_MAPS)
    await api.patch(f"{PODS}/a/status", {})
    counted = {entry[1:]: count for entry, count in api.server.audit.items()}
    assert counted == {
        ("create", "configmaps", ""): 1,
        ("list", "configmaps", ""): 1,
        ("patch", "pods", "status"): 1,
    }


async def test_body_beyond_the_limit_is_too_large(api: RawClient) -> None:
    answer = await api.post(CONFIG_MAPS, b'{"a":"' + b"x" * 3 * 1024 * 1024 + b'"}')
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_body_of_two_megabytes_is_read(api: RawClient) -> None:
    body = config_map("a") | {"binaryData": {"k": base64.b64encode(b"x" * 1_500_000).decode()}}
    # More than a ConfigMap may contain, but accepted as a body.
    assert (await api.post(CONFIG_MAPS, body)).code == 422


async def test_own_client_reaches_the_server_over_tls() -> None:
    async with serve() as server:
        assert server.url.startswith("https://127.0.0.1:")
        async with Client(server.config()) as client:
            key = ObjectKey("", "default")
            assert (await client.get(NAMESPACES, key, Object)).key == key


async def test_kubeconfig_suffices_for_another_client() -> None:
    async with serve(token="secret") as server:
        config = server.kubeconfig(namespace="team")
        cluster = config["clusters"][0]["cluster"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        assert config["users"][0]["user"] == {"token": "secret"}
        assert config["contexts"][0]["context"]["namespace"] == "team"
        context = ssl.create_default_context(cadata=ca)
        headers = {"Authorization": "Bearer secret"}
        async with (
            aiohttp.ClientSession(cluster["server"], headers=headers) as session,
            session.get("/api/v1/namespaces", ssl=context) as response,
        ):
            assert response.status == 200


async def test_server_stops_at_once_despite_an_open_watch() -> None:
    async with aiohttp.ClientSession() as session:
        async with serve(tls=False) as server:
            headers = {"Authorization": f"Bearer {server.token}"}
            response = await session.get(f"{server.url}{PODS}?watch=1", headers=headers)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
        response.close()

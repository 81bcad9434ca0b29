"""A raw client of the API server: codes, headers and bodies as sent."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.server import ApiServer

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@attrs.frozen
class Answer:
    code: int
    body: Any
    headers: dict[str, str]
    warnings: Sequence[str] = ()

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


@attrs.frozen
class Events:
    """An open watch; a missing event fails the test."""

    response: aiohttp.ClientResponse

    async def next(self) -> tuple[str, JSON]:
        async with asyncio.timeout(5):
            line = await self.response.content.readline()
        assert line, "the watch has ended"
        event = json.loads(line)
        return event["type"], event["object"]

    async def expect_end(self) -> bool:
        async with asyncio.timeout(5):
            return not await self.response.content.readline()

    async def next_named(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(type_, obj["metadata"].get("name", "")) for type_, obj in events]


@attrs.frozen
class RawVerbs:
    """The requests; a parameter named like a keyword ends in an underscore."""

    session: aiohttp.ClientSession

    async def call(
        self, method: str, path: str, body: Any = None, *, type_: str = "", **params: Any
    ) -> Answer:
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": type_ or "application/json"} if sent is not None else {}
        accept = params.pop("accept", "")
        if accept:
            headers["Accept"] = accept
        texts = {name.rstrip("_"): str(value) for name, value in params.items()}
        # In this form aiohttp accepts large ones without a warning.
        data = None if sent is None else io.BytesIO(sent)
        async with self.session.request(
            method, path, data=data, params=texts, headers=headers
        ) as response:
            raw = await response.read()
            plain = response.content_type != "application/json"
            text: Any = raw.decode() if plain else json.loads(raw)
            warnings = response.headers.getall("Warning", ())
            return Answer(response.status, text, dict(response.headers), tuple(warnings))

    async def get(self, path: str, **params: Any) -> Answer:
        return await self.call("GET", path, **params)

    async def post(self, path: str, body: Any, **params: Any) -> Answer:
        return await self.call("POST", path, body, **params)

    async def put(self, path: str, body: Any, **params: Any) -> Answer:
        return await self.call("PUT", path, body, **params)

    async def patch(self, path: str, body: Any, type_: str = MERGE, **params: Any) -> Answer:
        return await self.call("PATCH", path, body, type_=type_, **params)

    async def delete(self, path: str, body: Any = None, **params: Any) -> Answer:
        return await self.call("DELETE", path, body, **params)

    async def create(self, path: str, body: JSON) -> JSON:
        """Create an object that a test needs but is not about."""
        answer = await self.post(path, body)
        assert answer.code == 201, answer.body
        created: JSON = answer.body
        return created

    @asynccontextmanager
    async def watch(self, path: str, **params: Any) -> AsyncIterator[Events]:
        texts = {"watch": "true"} | {name: str(value) for name, value in params.items()}
        async with self.session.get(path, params=texts) as response:
            assert response.status == 200, await response.text()
            try:
                yield Events(response)
            finally:
                # The loop may end before the peer has responded to the TLS closure.
                if response.connection and response.connection.transport:
                    response.connection.transport.abort()


@attrs.frozen
class RawClient(RawVerbs):
    """The requests, and the server behind them."""

    server: ApiServer

    async def collect_garbage(self, path: str) -> None:
        """Wait until the garbage collector is idle."""
        for _ in range(100):
            if (await self.get(path)).code == 404:
                return
        raise AssertionError(f"{path} is still there")


async def until(holds: Callable[[], bool]) -> None:
    """Run the loop until the condition holds."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come about")


def config_map(name: str, **meta: Any) -> JSON:
    return {"metadata": {"name": name} | meta, "data": {"k": "v"}}


def pod(name: str, *, node: str = "", **meta: Any) -> JSON:
    spec: JSON = {"containers": [{"name": "main", "image": "mxnet"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name} | meta, "spec": spec}


def widget(name: str, **fields: Any) -> JSON:
    meta = {"name": name} | fields.pop("metadata", {})
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta} | fields


def widget_crd() -> JSON:
    schema = {
        "type": "object",
        "properties": {
            name: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            for name in ("spec", "status")
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }

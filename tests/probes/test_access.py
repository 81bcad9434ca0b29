import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.metrics import Metrics
from dlctl.probes.authorization import CACHE_SIZE, CACHE_TTL_S, DelegatedAuthorization
from dlctl.probes.exposition import exposition
from dlctl.probes.server import Health
from dlctl.probes.server import serving as probes
from tests.kube.scripted_server import Server, fails, replies, serving
from tests.support.raw_http import send_raw
from tests.support.timing import ManualClock

KNOWN: dict[str, Any] = {
    "status": {"authenticated": True, "user": {"username": "prometheus", "groups": ["scrapers"]}}
}
UNKNOWN: dict[str, Any] = {"status": {"authenticated": False}}
ALLOWED = {"status": {"allowed": True}}
DENIED = {"status": {"allowed": False}}


async def rendered_metrics() -> bytes:
    return await exposition(Metrics().registry)


@pytest.fixture
async def api() -> AsyncIterator[Server]:
    """An API server that reviews tokens."""
    async with serving(Server()) as server:
        yield server


async def scrape(api: Server, *tokens: str | None) -> list[int]:
    """Return the response to each of the tokens, from one controller."""
    found = []
    config = ClusterConfig.with_token(api.url, "our-own")
    async with (
        Client(config, user_agent="dlctl/metrics") as client,
        probes("127.0.0.1:0", rendered_metrics, Health(), DelegatedAuthorization(client)) as url,
        aiohttp.ClientSession(url) as session,
    ):
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
            async with session.get("/metrics", headers=headers) as response:
                found.append(response.status)
        async with session.get("/healthz") as response:
            assert response.status == 200
    return found


async def test_authorized_user_is_admitted(api: Server) -> None:
    api.handlers.extend([replies(KNOWN, 201), replies(ALLOWED, 201)])

    assert await scrape(api, "theirs") == [200]
    reviewed, permitted = api.seen
    assert reviewed.path == "/apis/authentication.k8s.io/v1/tokenreviews"
    assert reviewed.body["spec"] == {"token": "theirs"}
    assert permitted.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert permitted.body["spec"] == {
        "user": "prometheus",
        "uid": "",
        "groups": ["scrapers"],
        "extra": {},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_unauthorized_user_is_forbidden(api: Server) -> None:
    api.handlers.extend([replies(KNOWN, 201), replies(DENIED, 201)])
    assert await scrape(api, "theirs") == [403]


async def test_unknown_token_is_rejected(api: Server) -> None:
    api.handlers.append(replies(UNKNOWN, 201))
    assert await scrape(api, "anything") == [403]


async def test_missing_token_is_rejected_without_a_review(api: Server) -> None:
    assert await scrape(api, None) == [401]
    assert api.seen == []


@pytest.mark.parametrize("token", [b"\xff", "\N{SNOWMAN}".encode()])
async def test_token_that_is_not_ascii_is_rejected_without_a_review(
    api: Server, token: bytes
) -> None:
    config = ClusterConfig.with_token(api.url, "our-own")
    async with (
        Client(config, user_agent="dlctl/metrics") as client,
        probes("127.0.0.1:0", rendered_metrics, Health(), DelegatedAuthorization(client)) as url,
    ):
        code, _ = await send_raw(url, b"GET /metrics", b"Authorization: Bearer " + token)
    assert (code, api.seen) == (401, [])


async def test_review_is_cached_per_token(api: Server) -> None:
    api.handlers.extend([replies(KNOWN, 201), replies(ALLOWED, 201), replies(UNKNOWN, 201)])

    assert await scrape(api, "theirs", "theirs", "other", "other") == [200, 200, 403, 403]
    assert len(api.seen) == 3


async def test_all_users_are_rejected_while_token_reviews_fail(api: Server) -> None:
    api.handlers.append(fails(403, "Forbidden"))
    assert await scrape(api, "theirs", "theirs") == [503, 503]


async def test_reviews_of_strangers_tokens_do_not_delay_or_displace_a_known_one(
    api: Server,
) -> None:
    reviews, clock = asyncio.Event(), ManualClock()

    async def review(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["spec"].get("token") == "theirs":
            return await replies(KNOWN, 201)(request)
        if body["kind"] == "SubjectAccessReview":
            return await replies(ALLOWED, 201)(request)
        await reviews.wait()
        return await replies(UNKNOWN, 201)(request)

    api.handlers.append(review)
    async with Client(ClusterConfig.with_token(api.url, "our-own"), user_agent="dlctl") as client:
        authorize = DelegatedAuthorization(client, clock)
        await authorize("Bearer theirs")
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for number in range(CACHE_SIZE + 1):
                group.create_task(rejected(authorize, f"Bearer {number}"))
            await asyncio.sleep(0)
            await authorize("Bearer theirs")
            clock.seconds += CACHE_TTL_S + 1
            async with asyncio.timeout(5):
                await authorize("Bearer theirs")
            reviews.set()
        seen = len(api.seen)
        await authorize("Bearer theirs")
        assert len(api.seen) == seen


async def test_requests_that_are_ended_at_once_start_no_flood_of_reviews(api: Server) -> None:
    begun, reviews = asyncio.Semaphore(0), asyncio.Event()

    async def review(request: web.Request) -> web.StreamResponse:
        begun.release()
        await reviews.wait()
        return await replies(UNKNOWN, 201)(request)

    api.handlers.append(review)
    async with Client(ClusterConfig.with_token(api.url, "our-own"), user_agent="dlctl") as client:
        authorize = DelegatedAuthorization(client)
        requests = [asyncio.create_task(authorize(f"Bearer {number}")) for number in range(50)]
        async with asyncio.timeout(30):
            for _ in range(4):
                await begun.acquire()
            for request in requests[:40]:
                request.cancel()
                await asyncio.sleep(0.001)
            assert len(api.seen) == 4
            reviews.set()
            ended = await asyncio.gather(*requests, return_exceptions=True)
    assert {type(one) for one in ended[:40]} == {asyncio.CancelledError}
    assert {type(one) for one in ended[40:]} == {web.HTTPForbidden}
    # Those that were still waiting were never reviewed.
    assert len(api.seen) == 4 + 10


async def rejected(authorize: DelegatedAuthorization, header: str) -> None:
    with pytest.raises(web.HTTPForbidden):
        await authorize(header)

"""Access to the metrics: for anybody, or for users whom the API server lets get ``/metrics``.

Tokens are kept only as digests, and never logged.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import attrs
from aiohttp import web
from cachetools import LRUCache, TTLCache

from dlctl.api.meta import Resource
from dlctl.clock import Clock, SystemClock
from dlctl.kube.client import Client
from dlctl.kube.errors import RequestError
from dlctl.tasks import run_to_end

# Raises the HTTP error to respond with if access is denied.
Authorize = Callable[[str], Awaitable[None]]

TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_Digests = TTLCache[bytes, None]
_BEARER: Final = "bearer "
CACHE_TTL_S: Final = 60.0
CACHE_SIZE: Final = 1000


async def allow_all(authorization: str) -> None:
    """Allow every request."""


@attrs.define
class DelegatedAuthorization:
    """Allows requests whose token the API server authorizes to ``get`` ``/metrics``.

    Its client must be able to write while this process does not lead: standbys are scraped too.
    """

    client: Client
    clock: Clock = attrs.field(factory=SystemClock)
    # By digest, for a minute. Anyone can fill the one of rejected tokens.
    _allowed: _Digests = attrs.field(init=False)
    _rejected: _Digests = attrs.field(init=False)
    # Tokens that have been allowed: the next review of one does not wait for those of strangers.
    _known: LRUCache[bytes, None] = attrs.field(init=False, factory=partial(LRUCache, CACHE_SIZE))
    # A flood of tokens must not become a flood of requests to the API server.
    _limit: asyncio.Semaphore = attrs.field(init=False, factory=partial(asyncio.Semaphore, 4))
    _known_limit: asyncio.Semaphore = attrs.field(init=False, factory=partial(asyncio.Semaphore, 4))

    @_allowed.default
    @_rejected.default
    def _empty(self) -> _Digests:
        return TTLCache(CACHE_SIZE, CACHE_TTL_S, timer=self.clock.monotonic)

    async def __call__(self, authorization: str) -> None:
        # Tokens are ASCII. Other bytes of a header cannot even be encoded again.
        if not (authorization.isascii() and authorization.lower().startswith(_BEARER)):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        token = authorization[len(_BEARER) :].strip()
        digest = hashlib.sha256(token.encode()).digest()
        if digest in self._allowed:
            return
        async with self._known_limit if digest in self._known else self._limit:
            # Another request may have had it reviewed meanwhile.
            if digest not in self._allowed and digest not in self._rejected:
                # Clients that end their connections must not make room for further reviews.
                await run_to_end(self._review_token(token, digest))
            is_allowed = digest in self._allowed
        if not is_allowed:
            raise web.HTTPForbidden
        self._known[digest] = None

    async def _review_token(self, token: str, digest: bytes) -> None:
        try:
            user = await self._authenticate(token)
            is_allowed = bool(user) and await self._authorize(user)
        except RequestError as error:
            raise web.HTTPServiceUnavailable(text="the token cannot be reviewed") from error
        (self._allowed if is_allowed else self._rejected)[digest] = None

    async def _authenticate(self, token: str) -> dict[str, Any]:
        """Return the user of the token; empty if it is invalid."""
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        return dict(status.get("user") or {}) if status.get("authenticated") else {}

    async def _authorize(self, user: dict[str, Any]) -> bool:
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        return bool((await self._review(SUBJECT_ACCESS_REVIEWS, spec)).get("allowed"))

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        review = await self.client.create(resource, "", body, dict[str, Any])
        return dict(review.get("status") or {})

"""Who may read the metrics: anybody, or whom the API server knows and lets get ``/metrics``.

Tokens are kept as digests, and for a short time only. They never get into logs.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
from aiohttp import web
from cachetools import TTLCache

from dlctl.api.meta import Resource
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, UnexpectedAnswerError, UnreachableError

# Raises what the request is to be answered with, if it is not to be let in.
Access = Callable[[str], Awaitable[None]]

TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_BEARER: Final = "bearer "
_KEPT_S: Final = 60.0
_KEPT: Final = 1000


async def anybody(authorization: str) -> None:
    """Let everyone in."""


@attrs.define
class ReviewedAccess:
    """Lets in whose token the API server accepts for ``get`` on ``/metrics``.

    Its client must be able to write while this process does not lead: standbys are scraped too.
    """

    client: Client
    _verdicts: TTLCache[bytes, bool] = attrs.field(
        init=False, factory=lambda: TTLCache(_KEPT, _KEPT_S)
    )
    # Whoever floods us with tokens must not have us flood the API server.
    _asking: asyncio.Semaphore = attrs.field(init=False, factory=lambda: asyncio.Semaphore(4))

    async def __call__(self, authorization: str) -> None:
        if not authorization.lower().startswith(_BEARER):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        token = authorization[len(_BEARER) :].strip()
        digest = hashlib.sha256(token.encode()).digest()
        async with self._asking:
            verdict = self._verdicts.get(digest)
            if verdict is None:
                verdict = self._verdicts[digest] = await self._permitted(token)
        if not verdict:
            raise web.HTTPForbidden

    async def _permitted(self, token: str) -> bool:
        try:
            user = await self._user(token)
            return bool(user) and await self._may_read(user)
        except (ApiError, UnexpectedAnswerError, UnreachableError) as error:
            raise web.HTTPServiceUnavailable(text="tokens cannot be reviewed") from error

    async def _user(self, token: str) -> dict[str, Any]:
        """Return whose token it is; empty if it is nobody's."""
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        return dict(status.get("user") or {}) if status.get("authenticated") else {}

    async def _may_read(self, user: dict[str, Any]) -> bool:
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        return bool((await self._review(ACCESS_REVIEWS, spec)).get("allowed"))

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        answer = await self.client.create(resource, "", body, dict[str, Any])
        return dict(answer.get("status") or {})

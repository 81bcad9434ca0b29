"""HTTP: from a request to a call, from a reply or an error to a response.

The token is asked for here, requests are counted here, and faults strike here.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final, NamedTuple

import attrs
import msgspec
from aiohttp import web

from dlctl.local.apiserver import rbac, status
from dlctl.local.apiserver.bodies import LIMIT_BYTES
from dlctl.local.apiserver.calls import Call, Conversation, Reply, Response, Stream
from dlctl.local.apiserver.depth import DeepCalls
from dlctl.local.apiserver.faults import Fault, Faults, broken, reset, strike
from dlctl.local.apiserver.identities import OWNER, Tokens, User, named_user
from dlctl.local.apiserver.options import flag
from dlctl.local.apiserver.rbac import Authorizer
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.targets import Target, target

logger = logging.getLogger(__name__)

_HEALTH: Final = ("/healthz", "/readyz", "/livez")
# Discovery and OpenAPI: what is said of the API itself. None is an unknown path.
Documents = Callable[[str, Mapping[str, str], str], Reply | None]


class Audited(NamedTuple):
    """What is counted of a request."""

    user_agent: str
    verb: str
    resource: str
    subresource: str


@attrs.define(eq=False)
class Front:
    """The handler of all requests."""

    tokens: Tokens
    authorizer: Authorizer
    find: Callable[[Target], ServedResource | None]
    # Whether anything is served in the group and version of a path.
    knows: Callable[[Target], bool]
    answer: Callable[[ServedResource, Call], Response]
    documents: Documents
    faults: Faults
    audit: Counter[Audited] = attrs.field(factory=Counter)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._response(request)
        except StatusError as error:
            return failure(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except web.HTTPRequestEntityTooLarge:
            return failure(status.too_large(LIMIT_BYTES))
        except Exception as error:
            logger.exception("request failed", extra={"path": request.path})
            return failure(status.internal(str(error)))

    async def _response(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith(_HEALTH):
            return web.Response(text="ok")
        user = self._user(request) if path != "/version" else OWNER
        wanted = target(path)
        if wanted is None:
            rbac.check_path(user, path)
            document = self.documents(path, request.query, request.headers.get("Accept", ""))
            return _nowhere() if document is None else _whole(document)
        call = await call_of(request, wanted, user)
        if not user.may_do_all:
            self.authorizer.check(user, call)
        served = self.find(wanted)
        if served is None and not self.knows(wanted):
            return _nowhere()
        if served is None or not _is_complete(wanted, served):
            raise status.unknown_path()
        self.audit[Audited(call.user_agent, call.verb, wanted.qualified, wanted.subresource)] += 1
        fault = self.faults.take(call)
        if fault is None:
            return await _sent(request, self._answered(served, call))
        return await self._faulty(request, served, call, fault)

    def _answered(self, served: ServedResource, call: Call) -> Response:
        with DeepCalls():
            return self.answer(served, call)

    def _user(self, request: web.BaseRequest) -> User:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.tokens.user(token) if kind == "Bearer" else None
        if user is None:
            raise status.unauthorized()
        wanted = request.headers.get("Impersonate-User", "")
        groups = request.headers.getall("Impersonate-Group", ())
        return rbac.impersonated(user, named_user(wanted, groups)) if wanted else user

    async def _faulty(
        self, request: web.BaseRequest, served: ServedResource, call: Call, fault: Fault
    ) -> web.StreamResponse:
        await strike(request, fault)
        if fault.stale_by:
            call = attrs.evolve(call, stale_by=fault.stale_by)
        reply = self._answered(served, call)
        if fault.reset == "after":
            raise reset(request)
        if isinstance(reply, Stream):
            reply = attrs.evolve(reply, chunks=broken(reply.chunks, fault))
        return await _sent(request, reply)


class LargeRequest(web.BaseRequest):
    """A request whose body may be as large as the real server's limit."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, asyncio.get_running_loop(), client_max_size=LIMIT_BYTES)  # type: ignore[misc, arg-type]


def _is_complete(wanted: Target, served: ServedResource) -> bool:
    if not served.resource.namespaced:
        return not wanted.namespace
    return bool(wanted.namespace) or not wanted.name


async def call_of(request: web.BaseRequest, wanted: Target, user: User = OWNER) -> Call:
    query = request.query
    watch = bool(flag(query, "watch"))
    return Call(
        verb=wanted.verb(request.method, watch=watch),
        target=wanted,
        query=query,
        dry_run=query.getall("dryRun", []),
        command=query.getall("command", []),
        body=await request.read() if request.can_read_body else b"",
        content_type=request.headers.get("Content-Type", ""),
        accept=request.headers.get("Accept", ""),
        user_agent=request.headers.get("User-Agent", ""),
        user=user,
    )


async def _sent(request: web.BaseRequest, reply: Response) -> web.StreamResponse:
    if isinstance(reply, Reply):
        return _whole(reply)
    if isinstance(reply, Conversation):
        return await _conversed(request, reply)
    response = web.StreamResponse(headers=_headers())
    response.content_type = reply.content_type
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        async for chunk in reply.chunks:
            if chunk:
                await response.write(chunk)
    finally:
        # What a watch or a log holds is let go now, not when it is collected.
        if isinstance(reply.chunks, AsyncGenerator):
            await reply.chunks.aclose()
    await response.write_eof()
    return response


async def _conversed(request: web.BaseRequest, reply: Conversation) -> web.StreamResponse:
    if "upgrade" not in request.headers.get("Connection", "").lower():
        raise status.bad_request("Upgrade request required")
    if request.headers.get("Upgrade", "").lower() != "websocket":
        message = "unable to upgrade: only WebSockets are served here (kubectl 1.31 or later)"
        raise status.bad_request(message)
    response = web.WebSocketResponse(protocols=reply.protocols, compress=False)
    if not response.can_prepare(request).protocol:
        raise status.bad_request(f"unable to upgrade: served are {', '.join(reply.protocols)}")
    await response.prepare(request)
    await reply.hold(response)
    await response.close()
    return response


def _nowhere() -> web.Response:
    """Return the answer to a path of which not even the beginning is served: it is no Status."""
    return web.Response(text="404 page not found\n", status=404, headers=_headers())


def _headers() -> dict[str, str]:
    return {"Audit-Id": str(uuid.uuid4()), "Cache-Control": "no-cache, private"}


def _whole(reply: Reply) -> web.Response:
    return web.Response(
        body=reply.body, status=reply.code, content_type=reply.content_type, headers=_headers()
    )


def failure(error: StatusError) -> web.Response:
    headers = _headers()
    if error.retry_after_s:
        headers["Retry-After"] = str(error.retry_after_s)
    return web.Response(
        body=msgspec.json.encode(error.body()),
        status=error.code,
        content_type="application/json",
        headers=headers,
    )

"""HTTP: turns a request into a call, and a response or an error into HTTP.

Tokens are checked, requests counted and faults injected here.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import attrs
import msgspec
from aiohttp import web
from multidict import CIMultiDict

from dlctl.local.apiserver import status
from dlctl.local.apiserver.auth import rbac
from dlctl.local.apiserver.auth.authentication import Tokens
from dlctl.local.apiserver.auth.rbac import Authorizer
from dlctl.local.apiserver.discovery.documents import Documents
from dlctl.local.apiserver.faults import Fault, Faults, abort, end, faulty_stream, inject
from dlctl.local.apiserver.request_bodies import LIMIT_BYTES, as_text
from dlctl.local.apiserver.request_info import RequestInfo, parse_path
from dlctl.local.apiserver.request_options import boolean
from dlctl.local.apiserver.requests import (
    ApiRequest,
    ApiResponse,
    BufferedResponse,
    StreamedResponse,
    UpgradeResponse,
    VerbHandler,
)
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.serialization.nesting_depth import DeepCalls
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.upgrades.upgrades import upgrade
from dlctl.local.apiserver.users import ADMIN, User, named_user
from dlctl.local.apiserver.warning_headers import warning_headers

logger = logging.getLogger(__name__)

_HEALTH: Final = ("/healthz", "/readyz", "/livez")


class AuditKey(NamedTuple):
    """The attributes by which requests are counted."""

    user_agent: str
    verb: str
    resource: str
    subresource: str


@attrs.define(eq=False)
class RequestHandler:
    """The handler of all requests."""

    tokens: Tokens
    authorizer: Authorizer
    registry: ResourceRegistry
    serve: VerbHandler
    documents: Documents
    faults: Faults
    audit: Counter[AuditKey] = attrs.field(factory=Counter)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._response(request)
        except StatusError as error:
            return error_response(error)
        except ConnectionError:
            # Nobody is left to answer: what is written to the closed connection goes nowhere.
            return web.Response()
        except web.HTTPRequestEntityTooLarge:
            return error_response(status.too_large(LIMIT_BYTES))
        except web.RequestPayloadError as error:
            return error_response(status.bad_request(f"the body cannot be read: {error}"))
        except Exception as error:
            logger.exception("request failed", extra={"path": request.path})
            return error_response(status.internal_error(str(error)))

    async def _response(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith(_HEALTH):
            return web.Response(text="ok")
        user = self._user(request) if path != "/version" else ADMIN
        wanted = parse_path(path)
        if wanted is None:
            rbac.check_path(user, path)
            document = self.documents(path, request.headers.get("Accept", ""))
            return _unserved_path() if document is None else _to_http(document)
        call = await to_api_request(request, wanted, user)
        if not user.is_superuser:
            self.authorizer.authorize(user, call)
        served = self.registry.find(wanted.group, wanted.version, wanted.plural)
        if served is None and not self.registry.serves(wanted.group, wanted.version):
            return _unserved_path()
        if served is None or not _is_complete(wanted, served):
            raise status.unknown_path()
        self.audit[AuditKey(call.user_agent, call.verb, wanted.qualified, wanted.subresource)] += 1
        fault = self.faults.match(call)
        if fault is None:
            return await _send(request, self._serve(served, call), call.warnings)
        return await self._serve_with_fault(request, served, call, fault)

    def _serve(self, served: ServedResource, request: ApiRequest) -> ApiResponse:
        try:
            with DeepCalls():
                return self.serve(served, request)
        except StatusError as error:
            error.warnings = request.warnings
            raise

    def _user(self, request: web.BaseRequest) -> User:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.tokens.authenticate(token) if kind == "Bearer" else None
        if user is None:
            raise status.unauthorized()
        wanted = _text(request.headers.get("Impersonate-User", ""))
        groups = [_text(group) for group in request.headers.getall("Impersonate-Group", ())]
        return rbac.impersonate(user, named_user(wanted, groups)) if wanted else user

    async def _serve_with_fault(
        self,
        request: web.BaseRequest,
        served: ServedResource,
        api_request: ApiRequest,
        fault: Fault,
    ) -> web.StreamResponse:
        await inject(request, fault)
        if fault.late_s:
            late = partial(self._serve_late, served, api_request)
            asyncio.get_running_loop().call_later(fault.late_s, late)
            raise abort(request)
        if fault.stale_by:
            api_request = attrs.evolve(api_request, stale_by=fault.stale_by)
        reply = self._serve(served, api_request)
        if (instead := await end(request, fault)) is not None:
            return instead
        if isinstance(reply, StreamedResponse):
            reply = attrs.evolve(reply, chunks=faulty_stream(reply.chunks, fault))
        return await _send(request, reply, api_request.warnings)

    def _serve_late(self, served: ServedResource, api_request: ApiRequest) -> None:
        with suppress(StatusError):
            self._serve(served, api_request)


class LargeRequest(web.BaseRequest):
    """A request whose body may be as large as the real server allows."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, asyncio.get_running_loop(), client_max_size=LIMIT_BYTES)  # type: ignore[misc, arg-type]


def _is_complete(wanted: RequestInfo, served: ServedResource) -> bool:
    if not served.resource.namespaced:
        return not wanted.namespace
    return bool(wanted.namespace) or not wanted.name


async def to_api_request(
    request: web.BaseRequest, wanted: RequestInfo, user: User = ADMIN
) -> ApiRequest:
    query = request.query
    watch = bool(boolean(query, "watch"))
    body = await request.read() if request.can_read_body else b""
    content_type = request.headers.get("Content-Type", "")
    return ApiRequest(
        verb=wanted.verb(request.method, watch=watch),
        info=wanted,
        query=query,
        dry_run=query.getall("dryRun", []),
        command=query.getall("command", []),
        ports=query.getall("ports", []),
        body=as_text(body, content_type),
        content_type=content_type,
        accept=request.headers.get("Accept", ""),
        user_agent=_text(request.headers.get("User-Agent", "")),
        user=user,
    )


def _text(header: str) -> str:
    """Return a header with a replacement for each byte that is not UTF-8, as in Go's JSON."""
    return header.encode(errors="surrogateescape").decode(errors="replace")


async def _send(
    request: web.BaseRequest, reply: ApiResponse, warnings: Sequence[str]
) -> web.StreamResponse:
    if isinstance(reply, BufferedResponse):
        return _to_http(reply, warnings)
    if isinstance(reply, UpgradeResponse):
        return await upgrade(request, reply)
    response = web.StreamResponse(headers=_headers(warnings))
    response.content_type = reply.content_type
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    try:
        async for chunk in reply.chunks:
            if chunk:
                await response.write(chunk)
                # Serve others meanwhile, and notice a client that has disconnected.
                await asyncio.sleep(0)
    finally:
        # Release the resources of a watch or log now, not when it is garbage-collected.
        if isinstance(reply.chunks, AsyncGenerator):
            await reply.chunks.aclose()
    await response.write_eof()
    return response


def _unserved_path() -> web.Response:
    """Return the response to a path outside of all served ones, which is not a Status."""
    return web.Response(text="404 page not found\n", status=404, headers=_headers())


def _headers(warnings: Sequence[str] = ()) -> CIMultiDict[str]:
    headers = CIMultiDict({"Audit-Id": str(uuid.uuid4()), "Cache-Control": "no-cache, private"})
    for value in warning_headers(warnings):
        headers.add("Warning", value)
    return headers


def _to_http(reply: BufferedResponse, warnings: Sequence[str] = ()) -> web.Response:
    return web.Response(
        body=reply.body,
        status=reply.code,
        content_type=reply.content_type,
        headers=_headers(warnings),
    )


def error_response(error: StatusError) -> web.Response:
    headers = _headers(error.warnings)
    if error.retry_after_s:
        headers["Retry-After"] = str(error.retry_after_s)
    return web.Response(
        body=msgspec.json.encode(error.body()),
        status=error.code,
        content_type="application/json",
        headers=headers,
    )

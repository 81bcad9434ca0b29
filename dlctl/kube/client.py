"""The API verbs on typed objects. Response bytes are decoded straight into the requested type."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar, Unpack

import msgspec

from dlctl.api.meta import EVENTS, PODS, Object, ObjectKey, Resource
from dlctl.kube.config import ClusterConfig
from dlctl.kube.decoding import ListPage, decode_object, decode_page, is_status
from dlctl.kube.errors import DeadlineExceededError, NotFoundError, ResponseTooLargeError
from dlctl.kube.flowcontrol.rate_limiter import RateLimiter
from dlctl.kube.flowcontrol.write_limiter import WriteLimiter
from dlctl.kube.framing import split_lines
from dlctl.kube.queries import (
    DeleteOptions,
    ListOptions,
    PatchKind,
    WatchOptions,
    delete_body,
    query,
    with_smaller_pages,
)
from dlctl.kube.streams import execs, port_forwards
from dlctl.kube.transport import Request, Transport
from dlctl.kube.write_fence import MayWrite
from dlctl.metrics import Metrics

T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    # Default result type of writes: most callers need only the metadata.
    W = DefaultTypeVar("W", default=Object)
else:
    W = TypeVar("W")
REQUEST_TIMEOUT_S: Final = 60.0
MAX_RETRIES: Final = 10
# Bookmarks arrive about once a minute: if two are missing, the connection is dead.
WATCH_IDLE_TIMEOUT_S: Final = 130.0
# Of a page of a list, of which tenants choose how large its objects are; one object has a few MB.
MAX_PAGE_BYTES: Final = 32 << 20
# A server that stops in time can still say so.
_TIMEOUT_MARGIN_S: Final = 5.0


class Client:
    """One API server, for the duration of an ``async with`` block.

    Error responses raise :class:`~dlctl.kube.errors.ApiError`, anything else that prevents a
    response :class:`~dlctl.kube.errors.UnreachableError`. Reads are retried after a broken
    connection and when the server asks to retry later; writes only if the server certainly did
    nothing; both ``max_retries`` times at most. While ``may_write`` returns False, writes raise
    WriteFencedError and are not sent. Clients may share a ``rate_limiter``. ``as_`` is a
    projection, or ``dict[str, Any]`` for tools that show whole objects.
    """

    def __init__(  # noqa: PLR0913 - each is set by some caller.
        self,
        config: ClusterConfig,
        *,
        user_agent: str = "dlctl",
        metrics: Metrics | None = None,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        watch_idle_timeout_s: float = WATCH_IDLE_TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        may_write: MayWrite | None = None,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self.namespace = config.namespace
        self._watch_idle_timeout_s = watch_idle_timeout_s
        self._transport = Transport(
            config,
            user_agent=user_agent,
            metrics=metrics or Metrics(),
            timeout_s=request_timeout_s,
            max_retries=max_retries,
            may_write=may_write,
            rate_limiter=rate_limiter,
        )

    @property
    def write_limiter(self) -> WriteLimiter:
        return self._transport.write_limiter

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._transport.__aexit__(*exc_info)

    async def get(self, resource: Resource, key: ObjectKey, as_: type[T]) -> T:
        return decode_object(await self.get_raw(_path(resource, key)), as_)

    async def list(
        self,
        resource: Resource,
        as_: type[T],
        *,
        max_bytes: int | None = None,
        **options: Unpack[ListOptions],
    ) -> ListPage[T]:
        """Return one page: all objects, or up to ``limit``.

        :raises ResponseTooLargeError: if its text is longer than ``max_bytes``.
        """
        path = resource.path(options.get("namespace", ""))
        request = Request("GET", path, query(options), max_bytes=max_bytes)
        return await decode_page(await self._transport.send(request), as_)

    async def pages(
        self, resource: Resource, as_: type[T], **options: Unpack[ListOptions]
    ) -> AsyncIterator[ListPage[T]]:
        """Yield all objects, in pages of up to ``limit``, and of fewer where they are large.

        :raises ExpiredError: if the version of the first page has expired before the last one.
        """
        while True:
            # There is no smaller page than one object.
            max_bytes = None if options.get("limit") == 1 else MAX_PAGE_BYTES
            try:
                page = await self.list(resource, as_, max_bytes=max_bytes, **options)
            except ResponseTooLargeError:
                options = with_smaller_pages(options)
                continue
            yield page
            if not page.continue_:
                return
            # The token implies the version, which must not be sent along with it.
            options["resource_version"] = None
            options["continue_"] = page.continue_

    @asynccontextmanager
    async def watch(
        self, resource: Resource, **options: Unpack[WatchOptions]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of a watch, one event each, until the server ends it.

        Iteration raises UnreachableError if the connection breaks, or if not even a bookmark
        arrives.
        """
        request = Request(
            "GET",
            resource.path(options.get("namespace", "")),
            {"watch": "true", **query(options)},
            idle_timeout_s=self._watch_idle_timeout_s,
        )
        async with (
            self._transport.stream(request) as chunks,
            aclosing(split_lines(chunks)) as lines,
        ):
            yield lines

    async def create(
        self,
        resource: Resource,
        namespace: str,
        body: Mapping[str, object] | Callable[[], Mapping[str, object]],
        as_: type[W] = Object,  # type: ignore[assignment]
        *,
        params: Mapping[str, str] | None = None,
    ) -> W:
        """Create an object; a ``body`` that is a function is called for each attempt."""
        request = Request(
            "POST",
            resource.path(namespace),
            params or {},
            is_low_priority=resource == EVENTS,
            render=partial(_encode, body),
        )
        return decode_object(await self._transport.send(request), as_)

    async def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        body: Mapping[str, object] | Sequence[object] | Callable[[], Mapping[str, object]],
        as_: type[W] = Object,  # type: ignore[assignment]
        *,
        subresource: str = "",
        kind: PatchKind = PatchKind.MERGE,
    ) -> W:
        """Patch an object; a ``body`` that is a function is called for each attempt."""
        request = Request(
            "PATCH",
            _path(resource, key, subresource),
            render=partial(_encode, body),
            media_type=kind,
            is_low_priority=resource == EVENTS,
        )
        return decode_object(await self._transport.send(request), as_)

    async def replace(
        self,
        resource: Resource,
        key: ObjectKey,
        body: Mapping[str, object],
        as_: type[W] = Object,  # type: ignore[assignment]
    ) -> W:
        """Replace a whole object; never with one that was decoded as a projection."""
        request = Request(
            "PUT",
            _path(resource, key),
            body=msgspec.json.encode(body),
            is_low_priority=resource == EVENTS,
        )
        return decode_object(await self._transport.send(request), as_)

    async def delete(
        self, resource: Resource, key: ObjectKey, **options: Unpack[DeleteOptions]
    ) -> Object | None:
        """Delete the object; return it if the server does, and None if it is gone.

        A missing object counts as success: an earlier attempt may have deleted it.
        """
        body = msgspec.json.encode(delete_body(options))
        try:
            response = await self._transport.send(
                Request("DELETE", _path(resource, key), body=body)
            )
        except NotFoundError:
            return None
        return None if is_status(response) else decode_object(response, Object)

    async def delete_collection(
        self, resource: Resource, *, timeout_s: float, **options: Unpack[ListOptions]
    ) -> None:
        """Delete the selected objects of a namespace; after ``timeout_s`` the server stops.

        They are deleted by name: those of an older version than the newest may be others by now.
        """
        if not options.get("namespace") or not options.get("label_selector"):
            raise ValueError("expected a namespace and a label selector")
        request = Request(
            "DELETE",
            resource.path(options["namespace"]),
            {"timeout": f"{timeout_s:.1f}s", **query(options)},
            body=msgspec.json.encode(delete_body({})),
            timeout_s=timeout_s + _TIMEOUT_MARGIN_S,
        )
        await self._transport.send(request)

    async def get_raw(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        return await self._transport.send(Request("GET", path, params or {}))

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the chunks of a streamed response, such as a log, until the server ends it.

        There is no timeout: a program may write nothing for days. TCP keepalive detects a dead
        server.
        """
        async with self._transport.stream(Request("GET", path, params or {})) as chunks:
            yield chunks

    async def execute(
        self,
        pod: ObjectKey,
        container: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 10.0,
        output_limit: execs.OutputLimit | None = None,
    ) -> execs.ExecResult:
        """Run a command in a container of a pod; counts as a write.

        By default, a command that writes more than 64 KiB is cut off with OutputLimitError. Raises
        DeadlineExceededError on timeout, and UnreachableError if the connection breaks, as when the
        pod dies. In all these cases, and on cancellation, the command may keep running.
        """
        params = execs.query_params(container, command, stdin=bool(stdin))
        request = Request("GET", _path(PODS, pod, "exec"), params)
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._transport.open_websocket(request, execs.PROTOCOLS) as socket,
            ):
                return await execs.run(
                    socket, stdin=stdin, limit=output_limit or execs.OutputLimit()
                )
        except TimeoutError as error:
            message = f"the command in {pod} did not end within {timeout_s:g} s"
            raise DeadlineExceededError(message) from error

    async def forward_port(
        self, pod: ObjectKey, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Connect the streams to a port of a pod, until one of the two sides is closed."""
        request = Request("GET", _path(PODS, pod, "portforward"), {"ports": str(port)})
        async with self._transport.open_websocket(request, port_forwards.PROTOCOLS) as socket:
            await port_forwards.run(socket, reader, writer)


def _encode(
    body: Mapping[str, object] | Sequence[object] | Callable[[], Mapping[str, object]],
) -> bytes:
    return msgspec.json.encode(body() if callable(body) else body)


def _path(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    return resource.path(key.namespace, key.name, subresource)

"""Servers that do nothing but send what is in files, in a process of their own.

So that what is measured is the client alone.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextmanager
def serving_pages(pages: Mapping[str, Path]) -> Iterator[str]:
    """Serve a list in pages, by their continue tokens, and watches in which nothing happens."""
    with _in_process(
        "pages", json.dumps({token: str(path) for token, path in pages.items()})
    ) as url:
        yield url


@contextmanager
def serving_lines(path: Path) -> Iterator[str]:
    """Serve an empty list, and watches that send the lines of a file."""
    with _in_process("lines", json.dumps(str(path))) as url:
        yield url


@contextmanager
def _in_process(what: str, argument: str) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.servers", what, argument]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.stdin.close()


def page_handlers(pages: Mapping[str, str]) -> Handler:
    bodies = {token: Path(path).read_bytes() for token, path in pages.items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return web.json_response({"reason": "Invalid"}, status=422)
        if "watch" in request.query:
            await asyncio.sleep(3600)
        body = bodies[request.query.get("continue", "0")]
        return web.Response(body=body, content_type="application/json")

    return answer


def line_handlers(path: str) -> Handler:
    content = Path(path).read_bytes()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return web.json_response({"reason": "Invalid"}, status=422)
        if "watch" not in request.query:
            return web.json_response({"kind": "PodList", "metadata": {"resourceVersion": "1"}})
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for start in range(0, len(content), 1 << 16):
            await response.write(content[start : start + (1 << 16)])
        await asyncio.sleep(3600)
        return response

    return answer


async def serve(answer: Handler) -> None:
    """Print the address, and serve until standard input ends."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print("http://{}:{}".format(*runner.addresses[0][:2]), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    argument = json.loads(sys.argv[2])
    asyncio.run(
        serve(page_handlers(argument) if sys.argv[1] == "pages" else line_handlers(argument))
    )

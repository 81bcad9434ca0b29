"""Requests whose bytes a test chooses, such as headers that are not text."""

import asyncio
from urllib.parse import urlsplit


async def send_raw(url: str, head: bytes, *headers: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """Send a request, such as ``GET /path``; return the code and the body of the response."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    sized = b"Content-Length: %d" % len(body)
    lines = [head + b" HTTP/1.1", b"Host: test", b"Connection: close", sized, *headers, b"", body]
    writer.write(b"\r\n".join(lines))
    response, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(response.split()[1]), content

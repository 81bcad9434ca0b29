"""A command without a process: its streams, and an exit that the test chooses."""

import asyncio
from collections.abc import Callable
from typing import cast

import attrs


@attrs.define(eq=False)
class _Pipe:
    """A pipe: writes at one end are read at the other."""

    reader: asyncio.StreamReader = attrs.field(factory=asyncio.StreamReader)
    _is_closing: bool = attrs.field(init=False, default=False)

    def write(self, data: bytes) -> None:
        self.reader.feed_data(data)

    async def drain(self) -> None:
        """Return at once: a test writes little."""

    def close(self) -> None:
        self._is_closing = True
        self.reader.feed_eof()

    def is_closing(self) -> bool:
        return self._is_closing


@attrs.define(eq=False)
class FakeExecSession:
    """A command, as seen by the API server and by the test that plays it."""

    exit_code: "asyncio.Future[int]" = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )
    _stdin: _Pipe = attrs.field(init=False, factory=_Pipe)
    _stdout: _Pipe = attrs.field(init=False, factory=_Pipe)
    _stderr: _Pipe = attrs.field(init=False, factory=_Pipe)

    @property
    def streams(self) -> "FakeExecSession":
        return self

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        return cast("asyncio.StreamWriter", self._stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        return self._stdout.reader

    @property
    def stderr(self) -> asyncio.StreamReader:
        return self._stderr.reader

    @property
    def resize(self) -> Callable[[int, int], None]:
        return lambda rows, columns: None

    async def line(self) -> str:
        """Read a line as ``read -r`` does."""
        return (await self._stdin.reader.readline()).decode().removesuffix("\n")

    def write_stdout(self, text: str) -> None:
        self._stdout.write(text.encode())

    def end(self, code: int, *, said: str = "") -> None:
        if self.exit_code.done():
            return
        self._stderr.write(said.encode())
        self._stdout.close()
        self._stderr.close()
        self.exit_code.set_result(code)

    def break_off(self) -> None:
        """End as a connection to a node that died."""
        if not self.exit_code.done():
            self.exit_code.set_exception(ConnectionResetError("the node has died"))

    def kill(self) -> None:
        self.end(137)

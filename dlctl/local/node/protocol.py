"""What the node and its agent say to each other: one JSON message a line, over a socket pair.

The node asks and the agent answers by ``id``; that a container ended comes unasked. An answer to
:class:`StartContainer` means that the program was executed, not that it does well.
"""

from typing import Final

import msgspec

# The longest message that the node reads.
LINE_LIMIT: Final = 1 << 22


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of the machine, shown at another path in a container."""

    source: str
    target: str
    read_only: bool = False


class CreateSandbox(msgspec.Struct, frozen=True, tag="create"):
    """Make the network of a pod: an interface with the IP, and a loopback."""

    id: int
    pod: str
    ip: str


class RemoveSandbox(msgspec.Struct, frozen=True, tag="remove"):
    """Drop the network of a pod; its containers are gone by then."""

    id: int
    pod: str


class StartContainer(msgspec.Struct, frozen=True, tag="start", kw_only=True):
    """Run a program in the sandbox of a pod, or in the node's own network without one."""

    id: int
    container: str
    pod: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    log_path: str
    hostname: str = ""
    mounts: list[Mount] = []
    # An empty directory, needed only with mounts.
    scratch: str = ""


class StopContainer(msgspec.Struct, frozen=True, tag="stop"):
    """Send SIGTERM to the program, or SIGKILL to all that came of it; there is no answer."""

    container: str
    kill: bool = False


class ExecInContainer(msgspec.Struct, frozen=True, tag="run", kw_only=True):
    """Run one more program in a running container; its environment is the container's."""

    id: int
    container: str
    # Names this run of a program among those of the container.
    exec_id: str
    argv: list[str]
    # Pipes or a terminal, which the node has opened at its end; without a path for its input, a
    # command has none.
    stdin: str = ""
    stdout: str
    stderr: str
    terminal: bool = False


class KillExec(msgspec.Struct, frozen=True, tag="kill-run"):
    """Send SIGKILL to a program that was started by :class:`RunInside`; there is no answer."""

    container: str
    exec_id: str


class AgentStarted(msgspec.Struct, frozen=True, tag="started"):
    """The agent's first message: whether the namespaces were granted, and if not, why.

    If they were, a socket comes with it that listens where pods look for the API server.
    """

    error: str = ""


class Response(msgspec.Struct, frozen=True, tag="answer"):
    """How a request went; ``exit_code`` is what a shell would show for the failed start."""

    id: int
    error: str = ""
    exit_code: int = 0


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """A container ended; a signal shows as 128 + n."""

    container: str
    exit_code: int


class ExecExited(msgspec.Struct, frozen=True, tag="run-ended"):
    """A program beside that of a container ended; all do, untold, when their container does."""

    container: str
    exec_id: str
    exit_code: int


Request = (
    CreateSandbox | RemoveSandbox | StartContainer | StopContainer | ExecInContainer | KillExec
)
Message = AgentStarted | Response | Exited | ExecExited

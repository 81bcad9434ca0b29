"""The protocol between node and agent: one JSON message per line, over a socket pair.

The node sends requests and the agent responds by ``id``; ends of containers are announced unasked.
A response to :class:`StartContainer` means that the program was executed, not that it succeeds.
"""

from typing import Final

import msgspec

# The longest message that the node reads.
LINE_LIMIT: Final = 1 << 22
# Where programs write why they end, unless their container sets another file.
MESSAGE_PATH: Final = "/dev/termination-log"


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of the machine, mounted at another path in a container."""

    source: str
    target: str
    read_only: bool = False


class CreateSandbox(msgspec.Struct, frozen=True, tag="create"):
    """Create the network of a pod: an interface with the IP, and a loopback."""

    id: int
    pod: str
    ip: str


class RemoveSandbox(msgspec.Struct, frozen=True, tag="remove"):
    """Remove the network of a pod; its containers have terminated."""

    id: int
    pod: str


class OpenSocket(msgspec.Struct, frozen=True, tag="socket"):
    """Open a TCP socket in the network of a pod; it comes over the socket for descriptors."""

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
    # How much of its log is kept; 0 keeps all of it.
    log_limit_bytes: int = 0
    hostname: str = ""
    mounts: list[Mount] = []
    # An empty directory, needed only with mounts.
    scratch: str = ""
    # Files of control groups; a process joins by writing 0.
    groups: list[str] = []


class StopContainer(msgspec.Struct, frozen=True, tag="stop"):
    """Send SIGTERM to the program, or SIGKILL to its whole process tree; no response."""

    container: str
    kill: bool = False


class ExecInContainer(msgspec.Struct, frozen=True, tag="run", kw_only=True):
    """Run a command in a running container, with the container's environment."""

    id: int
    container: str
    # Identifies the command among those of the container.
    exec_id: str
    argv: list[str]
    # Pipes or a terminal, already open on the node's side; without a path for stdin, the command
    # has none.
    stdin: str = ""
    stdout: str
    stderr: str
    terminal: bool = False


class KillExec(msgspec.Struct, frozen=True, tag="kill-run"):
    """Send SIGKILL to a command started by :class:`ExecInContainer`; no response."""

    container: str
    exec_id: str


class AgentStarted(msgspec.Struct, frozen=True, tag="started"):
    """The agent's first message: whether namespaces are available, and if not, why.

    If they are, it comes with a socket that listens where pods look for the API server, and with
    two for connections to the outside and for DNS, unless ``no_internet`` says why there are none.
    """

    error: str = ""
    no_internet: str = ""


class AgentResponse(msgspec.Struct, frozen=True, tag="answer"):
    """The result of a request; an error says why a program was not started."""

    id: int
    error: str = ""


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """A container terminated; signal n gives exit code 128 + n."""

    container: str
    exit_code: int


class ExecExited(msgspec.Struct, frozen=True, tag="run-ended"):
    """A command terminated; not sent if its container terminates first."""

    container: str
    exec_id: str
    exit_code: int


AgentRequest = (
    CreateSandbox
    | RemoveSandbox
    | OpenSocket
    | StartContainer
    | StopContainer
    | ExecInContainer
    | KillExec
)
AgentMessage = AgentStarted | AgentResponse | Exited | ExecExited

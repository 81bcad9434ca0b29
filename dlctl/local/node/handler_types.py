"""The projections of probes and lifecycle hooks."""

from typing import Any

from dlctl.api.meta import Projection


class ContainerPort(Projection, frozen=True, gc=False):
    """A port of a container, by which probes may call it."""

    container_port: int
    name: str = ""


class ExecAction(Projection, frozen=True, gc=False):
    """A command that runs in the container."""

    command: list[str] | None = None


class HTTPHeader(Projection, frozen=True, gc=False):
    """A header of a request."""

    name: str
    value: str = ""


class HTTPGetAction(Projection, frozen=True, gc=False):
    """A request; status codes from 200 to 399 are a success."""

    port: int | str
    path: str | None = None
    host: str | None = None
    scheme: str | None = None
    http_headers: list[HTTPHeader] | None = None


class TCPSocketAction(Projection, frozen=True, gc=False):
    """A connection, which is closed at once."""

    port: int | str
    host: str | None = None


class SleepAction(Projection, frozen=True, gc=False):
    """A pause, for hooks only."""

    seconds: int = 0


class Handler(Projection, frozen=True, gc=False):
    """One of several actions; one that the node does not know succeeds."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None
    grpc: dict[str, Any] | None = None


class Probe(Handler, frozen=True, gc=False):
    """An action at intervals, and how many results count; the API server sets the defaults."""

    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(Projection, frozen=True, gc=False):
    """Hooks after the start of a container and before its stop."""

    post_start: Handler | None = None
    pre_stop: Handler | None = None

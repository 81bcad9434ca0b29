"""What holds for all tests."""

import asyncio
import logging
import signal
from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from dlctl.cli import program
from tests.support.command_line import Dlctl, Finished

# Otherwise pytest-asyncio asks for the current loop between two tests, Python 3.11 makes one, and
# nobody closes it: the warning would fail whichever test is next.
asyncio.set_event_loop(None)

# In the background of a shell it is ignored, and tests end what they start by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast a machine is, and how busy, says nothing about the code.
settings.register_profile("dlctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dlctl")

_MAY_BLOCK = (
    # A table of the package, read once in the life of a process.
    ("dlctl/api/core_types/type_tables.py", "pod_types"),
    # Kubernetes' own client, which reads small local files when credentials are to be renewed.
    ("dlctl/kube/config.py", "load"),
    ("dlctl/kube/config.py", "_from_kubeconfig"),
    ("dlctl/kube/config.py", "_load"),
    ("dlctl/kube/config.py", "in_cluster"),
    ("dlctl/kube/config.py", "reload"),
    # The process's own numbers; /proc is memory.
    ("prometheus_client/process_collector.py", "collect"),
    # To the standard error.
    ("logging/__init__.py", "emit"),
    ("logging/__init__.py", "flush"),
)


@pytest.fixture(autouse=True)
def _nothing_blocks() -> Iterator[None]:
    """Fail a call of ours that reads a file, sleeps or waits for a lock within an event loop.

    The embedded cluster and the commands are for one user's laptop: they read files of their own.
    The registry of frameworks looks for packages before there is any work.
    """
    laptop = ["dlctl.local", "dlctl.cli", "dlctl.embedded_cluster", "dlctl.blocking_cluster"]
    excluded = [*laptop, "dlctl.frameworks.registry"]
    with blockbuster_ctx("dlctl", excluded_modules=excluded) as blocking:
        for function in blocking.functions.values():
            for file, name in _MAY_BLOCK:
                function.can_block_in(file, name)
        yield


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """Restore what a command configures for the life of its process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def dlctl(capsys: pytest.CaptureFixture[str]) -> Dlctl:
    """Run one command line in this process."""

    def run(*arguments: str) -> Finished:
        try:
            code = program.run(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run

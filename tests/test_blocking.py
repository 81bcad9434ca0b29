"""The guard of all tests: code of ours that blocks the event loop fails its test."""

from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockingError

import dlctl


def reading(module: str) -> Any:
    """Return a function that reads a file, as if it stood in a module of ours."""
    scope: dict[str, Any] = {}
    file = Path(dlctl.__file__).parent / module
    exec(compile("def read(path): return path.read_text()", str(file), "exec"), scope)
    return scope["read"]


async def test_blocking_read_by_the_controller_fails_the_test() -> None:
    with pytest.raises(BlockingError):
        reading("reconcilers/some.py")(Path(__file__))


async def test_blocking_read_by_the_embedded_cluster_is_allowed() -> None:
    assert reading("local/some.py")(Path(__file__))


def test_blocking_read_outside_a_loop_is_allowed() -> None:
    assert reading("reconcilers/some.py")(Path(__file__))

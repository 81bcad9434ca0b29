"""Content errors are those of pure steps: what fails while a step waits is no error of the job."""

import ast
from pathlib import Path

import pytest

import dlctl.reconcilers
from dlctl.reconcilers.content_errors import wrap_content_errors

SOURCES = sorted(Path(dlctl.reconcilers.__file__).parent.rglob("*.py"))


def wraps(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Name) and part.id == wrap_content_errors.__name__
        for item in getattr(node, "items", ())
        for part in ast.walk(item.context_expr)
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_nothing_is_awaited_in_a_pure_step(path: Path) -> None:
    steps = [node for node in ast.walk(ast.parse(path.read_text())) if wraps(node)]
    awaits = [part for step in steps for part in ast.walk(step) if isinstance(part, ast.Await)]
    assert not [node.lineno for node in awaits]

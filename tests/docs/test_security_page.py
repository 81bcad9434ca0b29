"""The page on security names a test for each of its claims: those exist."""

import re
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = (_ROOT / "docs/operate/security.md").read_text()
_NAMED: Final = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", _PAGE)))


@pytest.mark.parametrize(("path", "name"), _NAMED)
def test_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (_ROOT / path).read_text(), re.MULTILINE)


def test_each_row_names_its_test() -> None:
    tables = [part for part in _PAGE.split("\n\n") if part.startswith("|") and "test |" in part]
    rows = [row for table in tables for row in table.splitlines()[2:]]
    assert len(rows) > 30
    assert not [row for row in rows if "`tests/" not in row]

"""Files that the pages name exist."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT

_PATH: Final = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|yaml|toml))(?:::\w+)?`")
_NAMED: Final = sorted(
    {
        (str(page.relative_to(ROOT)), path)
        for page in PAGES
        for path in _PATH.findall(page.read_text())
    }
)


@pytest.mark.parametrize(("page", "path"), _NAMED)
def test_file_that_a_page_names_exists(page: str, path: str) -> None:
    assert any((folder / path).exists() for folder in (ROOT, ROOT / "dlctl"))


def test_modules_of_membership_are_those_of_the_page() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    table = page.split("| module of `reconcilers/membership` |")[1].split("\n\n")[0]
    for name in re.findall(r"`(\w+)`", table):
        assert Path(ROOT / "dlctl/reconcilers/membership" / f"{name}.py").exists(), name


def test_packages_import_what_the_page_allows() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    allowed: dict[str, set[str]] = {}
    for row in page.split("| package |")[1].split("\n\n")[0].splitlines()[2:]:
        packages, _, imports = row.strip("| ").split(" | ")
        names = set(re.findall(r"`(\w+)`", imports))
        if imports in ("all of the above", "everything"):
            names = set(allowed)
        below = names.union(*(allowed.get(name, set()) for name in names))
        allowed.update({name: below | {name} for name in re.findall(r"`(\w+)`", packages)})
    assert {"api", "reconcilers", "local"} <= allowed.keys()
    for name in sorted(allowed.keys() - {"cli"}):
        for path in sorted((ROOT / "dlctl" / name).rglob("*.py")):
            imported = set(re.findall(r"^from dlctl\.(\w+)", path.read_text(), re.MULTILINE))
            assert imported & allowed.keys() <= allowed[name], path

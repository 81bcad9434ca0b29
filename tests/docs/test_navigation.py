"""The navigation of the site."""

import re

from tests.docs.pages import ROOT

_NAME = re.compile(r"[\w./-]+\.md\b")


def test_navigation_names_all_pages_and_no_others() -> None:
    named = set(_NAME.findall((ROOT / "mkdocs.yml").read_text()))
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    # The build adds some of the root.
    assert named - pages == {"CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"}
    assert pages <= named

"""Links of the pages that the site does not have; `make docs` checks the others."""

import re
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_LINK: Final = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_LINKS: Final = sorted(set(_LINK.findall((_ROOT / "README.md").read_text())))


@pytest.mark.parametrize(("target", "anchor"), _LINKS)
def test_link_of_the_readme_leads_to_a_file_and_a_heading(target: str, anchor: str) -> None:
    path = _ROOT / (target or "README.md")
    assert path.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
        assert anchor in [_anchor(heading) for heading in headings]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")

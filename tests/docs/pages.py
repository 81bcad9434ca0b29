"""The pages of the documentation and the code blocks in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[2]


def _is_ours(path: Path) -> bool:
    folders = path.relative_to(ROOT).parts[:-1]
    return not any(name == "dist" or name.startswith(".") for name in folders if name != ".github")


# All of the repository's, so that none is missed.
PAGES: Final = tuple(sorted(filter(_is_ours, ROOT.glob("**/*.md"))))
_BLOCK: Final = re.compile(
    r"(?:<!-- (?P<marker>[^\n]*) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[\w+-]*)(?P<attributes>[^\n]*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE: Final = re.compile(r'title="([^"]+)"')


@attrs.frozen
class Block:
    """A fenced block: its language, the comment above it, the file that it is, and its text."""

    language: str
    marker: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for match in _BLOCK.finditer(page.read_text()):
        title = _TITLE.search(match["attributes"])
        indent = len(match["indent"])
        text = "".join(line[indent:] for line in match["text"].splitlines(keepends=True))
        marker = (match["marker"] or "").strip()
        yield Block(match["language"], marker, title[1] if title else "", text)

"""mkdocs hook: pages and files of the repository outside ``docs`` that pages link to.

A link such as ``../examples/numpy/linear-dist.yaml`` works on a code host as it is. In the site it
leads to a copy of the file, so that no address of a host stands in a page.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
# At the root of the repository, where code hosts look for them.
ROOT_PAGES: Final = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?(?=\))")
_FENCE: Final = re.compile(r"^ *(```|~~~)")
_LOADED: Final = re.compile(
    r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = ROOT if page.file.src_uri in ROOT_PAGES else ROOT / "docs" / page.file.src_uri / ".."
    for target in linked_outside(markdown, folder):
        if target.name not in ROOT_PAGES and files.get_file_from_path(copied(target)) is None:
            path = str(ROOT / target)
            files.append(File.generated(config, copied(target), abs_src_path=path))
    return relinked(markdown, folder, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    for path in Path(config.site_dir).rglob("*.html"):
        if loaded := _LOADED.search(path.read_text()):
            raise PluginError(f"{path} loads something from elsewhere: {loaded[0]}")


def linked_outside(markdown: str, folder: Path) -> set[PurePosixPath]:
    """Return the files outside ``docs`` that a page in the folder links to, seen from the root.

    :raises PluginError: if one is no file.
    """
    found = {_target(match[1], folder) for match in _links(markdown)}
    outside = {path for path in found if path.parts[0] != "docs"}
    for path in outside:
        if not (ROOT / path).is_file():
            raise PluginError(f"a page in {folder} links to {path}, which is not a file")
    return outside


def relinked(markdown: str, folder: Path, page: str) -> str:
    """Return the page with links that hold in the site, where ``page`` is its place there."""

    def link(match: re.Match[str]) -> str:
        target = _target(match[1], folder)
        place = _place(target)
        return os.path.relpath(place, PurePosixPath(page).parent) + (match[2] or "")

    lines = markdown.splitlines(keepends=True)
    for number in _prose(lines):
        lines[number] = _LINK.sub(link, lines[number])
    return "".join(lines)


def copied(target: PurePosixPath) -> str:
    """Return where the copy of a file is in the site."""
    return f"files/{target}"


def _place(target: PurePosixPath) -> str:
    if target.parts[0] == "docs":
        return str(target.relative_to("docs"))
    return target.name if str(target) in ROOT_PAGES else copied(target)


def _target(link: str, folder: Path) -> PurePosixPath:
    path = Path(os.path.normpath(folder / link))
    if path.is_dir() and path.is_relative_to(ROOT / "docs"):
        path /= "index.md"
    return PurePosixPath(path.relative_to(ROOT))


def _links(markdown: str) -> list[re.Match[str]]:
    lines = markdown.splitlines()
    return [match for number in _prose(lines) for match in _LINK.finditer(lines[number])]


def _prose(lines: list[str]) -> list[int]:
    """Return the numbers of the lines that are in no fenced block."""
    numbers, fenced = [], False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            numbers.append(number)
    return numbers

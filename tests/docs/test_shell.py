"""Shell blocks of all pages: each is run here, against an embedded cluster, or says why not.

A comment right above a block says what to do with it:

- ``<!-- not run: why -->``
- ``<!-- fails -->``, for what has to end with another exit code than 0;
- ``<!-- run in the background until: command -->``, for what does not end;
- ``<!-- cluster -->``, to start an embedded cluster first, for it and all that follows.

One shell runs the blocks of a page in their order. Those with a ``title`` are files in its folder.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks

_SHELL: Final = ("sh", "bash", "console", "shell")
_NOT_RUN: Final = "not run: "
_FAILS: Final = "fails"
_BACKGROUND: Final = "run in the background until: "
_CLUSTER: Final = "cluster"
_LIMIT_S: Final = 240
# Fails without the arguments that the pages give it.
_SCRIPT: Final = "import sys\nsys.exit(sys.argv[1:] != ['--lr', '0.1'])\n"
_END: Final = "trap 'kill $(jobs -p) && wait || true' EXIT\n"
_START: Final = (
    'dlctl up --kubeconfig "$PWD/kubeconfig" >up.log 2>&1 &\n'
    "until test -s kubeconfig; do sleep 0.1; done\n"
    "export KUBECONFIG=$PWD/kubeconfig\n"
)


def _shell_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language in _SHELL and not block.title]


_TRIED: Final = [
    page
    for page in PAGES
    if not all(block.marker.startswith(_NOT_RUN) for block in _shell_blocks(page))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_comment_above_a_shell_block_is_known(page: Path) -> None:
    markers = [block.marker for block in _shell_blocks(page) if block.marker]
    assert [m for m in markers if not m.startswith((_NOT_RUN, _FAILS, _BACKGROUND, _CLUSTER))] == []
    assert all(len(m) > len(_NOT_RUN) + 5 for m in markers if m.startswith(_NOT_RUN))


@pytest.mark.slow
@pytest.mark.timeout(_LIMIT_S + 10)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("page", _TRIED, ids=lambda page: str(page.relative_to(ROOT)))
def test_shell_blocks_of_a_page_succeed(page: Path, tmp_path: Path) -> None:
    _furnish(page, tmp_path)
    process = subprocess.Popen(
        ("bash", "-euxo", "pipefail", "-c", _script(page)),
        cwd=tmp_path,
        env=_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_LIMIT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output


def _furnish(page: Path, folder: Path) -> None:
    """Fill the folder with the repository's files, the reader's, and those of the page."""
    for name in ("examples", "manifests"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("datasets", "src"):
        (folder / name).mkdir()
    (folder / "train.py").write_text(_SCRIPT)
    for block in blocks(page):
        if block.title:
            (folder / block.title).write_text(block.text)


def _script(page: Path) -> str:
    return "\n".join((_END, *map(_command, _shell_blocks(page))))


def _command(block: Block) -> str:
    if block.marker.startswith(_NOT_RUN):
        return ""
    if block.marker.startswith(_BACKGROUND):
        ready = block.marker.removeprefix(_BACKGROUND)
        return f"{block.text.rstrip()} &\nuntil {ready}; do sleep 0.1; done\n"
    if block.marker == _FAILS:
        return f"if ( {block.text.rstrip()} ); then exit 1; fi"
    return _START + block.text if block.marker == _CLUSTER else block.text


def _environment(folder: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**kept, "PATH": path, "HOME": str(folder), "TERM": "dumb"}

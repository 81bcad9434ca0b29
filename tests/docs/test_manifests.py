"""YAML on the pages: it parses, and jobs are valid."""

import re
from typing import Any, Final

import pytest
import yaml

from tests.builders import KINDS
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.support.command_line import Dlctl

_OURS: Final = tuple({f"{kind.resource.group}/" for kind in KINDS})
# The page's own framework, which is not installed here: test_extend.py runs its job.
_OWN_KIND: Final = re.compile("^kind: RingJob$", re.MULTILINE)
_BLOCKS: Final = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
    if block.language == "yaml"
]


@pytest.mark.parametrize("block", _BLOCKS)
def test_yaml_parses_and_jobs_become_pods(block: Block, dlctl: Dlctl, tmp_path: Any) -> None:
    documents = list(yaml.safe_load_all(block.text))
    assert all(isinstance(document, dict | list) for document in documents)
    if any(_is_job(document) for document in documents) and not _OWN_KIND.search(block.text):
        path = tmp_path / "job.yaml"
        path.write_text(block.text)
        done = dlctl("render", str(path))
        assert done.code == 0, done.err
        assert "kind: Pod\n" in done.out


def _is_job(document: Any) -> bool:
    version = document.get("apiVersion", "") if isinstance(document, dict) else ""
    return str(version).startswith(_OURS)

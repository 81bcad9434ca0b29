"""mkdocs hook: fills in what follows from the code.

A page says where: ``<!-- generated: flags -->``, or ``<!-- flags: workers log-level -->`` for some.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from docs.generate import conditions, fields, flags, metrics, performance

_PLACE: Final = re.compile(r"^<!-- (generated|flags): ([\w -]+) -->$", re.MULTILINE)
# The roles of reStructuredText in docstrings.
_ROLE: Final = re.compile(r":(?:attr|class|func|meth|mod):(?=<code>)")
_TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "condition messages": conditions.condition_messages,
    "fields": fields.all_fields,
    "flags": flags.all_flags,
    "flags of training-operator": flags.training_operator_flags,
    "flags of et-operator": flags.et_operator_flags,
    "flags of mpi-operator": flags.mpi_operator_flags,
    "metrics": metrics.all_metrics,
    "performance of creation": performance.creation,
    "performance of other scenarios": performance.other_scenarios,
    "performance conditions": performance.conditions,
}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def generated(match: re.Match[str]) -> str:
        try:
            if match[1] == "flags":
                return flags.some_flags(match[2].split())
            return _TABLES[match[2]]()
        except KeyError as error:
            raise PluginError(f"{page.file.src_uri}: {match[0]}: there is no {error}") from error

    return _PLACE.sub(generated, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return _ROLE.sub("", html)

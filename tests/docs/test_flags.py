"""Flags on the pages exist: dlctl's, or those of another program on the page."""

import re
from typing import Final

import pytest

from dlctl.cli.program import COMMANDS
from tests.docs.pages import PAGES, ROOT
from tests.support.command_line import Dlctl

_CHART_SETTING: Final = re.compile(r"settings\.([a-z][a-z-]+)=")
# In running text; the blocks of the shell are run.
_NAMED: Final = re.compile(r"`(?:dlctl [a-z]+ )?(--[a-z][a-z-]+)")
_FLAG: Final = re.compile(r"--[a-z][a-z-]+")
# Of kubectl, docker, horovodrun, the mx-operators and the program that compares with mpi-operator.
_OTHERS: Final = {
    *("--as", "--server-side", "--since", "--since-time", "--replicas"),
    "--ignore-not-found",
    *("--controller-config-file", "--enable-gang-scheduling", "--json-log-format"),
    *("--chaos-level", "--gc-interval"),
    *("--build-arg", "--host-discovery-script", "--case", "--theirs"),
}
# For itself, and for the picture in the README.
_UNEXPLAINED: Final = {"--help", "--record"}


def test_flag_that_a_page_names_exists(dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    known = {flag for name in COMMANDS for flag in _FLAG.findall(dlctl(name, "--help").out)}
    assert len(known) > 40
    missing = {
        (str(page.relative_to(ROOT)), flag)
        for page in PAGES
        for flag in _NAMED.findall(page.read_text())
        if flag not in known | _OTHERS
    }
    assert missing == set()


def test_setting_of_the_chart_that_a_page_names_exists(
    dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    known = set(_FLAG.findall(dlctl("controller", "--help").out))
    named = {name for page in PAGES for name in _CHART_SETTING.findall(page.read_text())}
    assert len(named) > 4
    assert {name for name in named if f"--{name}" not in known} == set()


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"controller"}))
def test_flag_of_a_command_is_on_a_page(
    name: str, dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    pages = "\n".join(page.read_text() for page in PAGES)
    flags = re.findall(r"^  (-.*?)(?:  |$)", dlctl(name, "--help").out, re.MULTILINE)
    forms = [re.findall(r"(?:^|, )(--?[a-z-]+)", flag) for flag in flags]
    assert [each for each in forms if _is_missing(each, pages)] == []


def _is_missing(forms: list[str], pages: str) -> bool:
    if not _UNEXPLAINED.isdisjoint(forms):
        return False
    return not any(re.search(rf"(?<![\w-]){form}(?![\w-])", pages) for form in forms)

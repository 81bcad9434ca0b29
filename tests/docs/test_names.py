"""Names that users meet in a cluster are on the page that lists them."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from tests.docs.pages import PAGES, ROOT

_OURS: Final = re.compile(r"\bdlctl\.dev/[a-z-]*[a-z]")
_SOURCES: Final = tuple(
    path
    for folder in ("dlctl/api", "dlctl/controller", "dlctl/dialects", "dlctl/reconcilers")
    for path in sorted((ROOT / folder).rglob("*.py"))
)


def test_each_label_and_annotation_is_listed() -> None:
    page = (ROOT / "docs/reference/labels.md").read_text()
    sources = sorted((ROOT / "dlctl").rglob("*.py"))
    used = {name for path in sources for name in _OURS.findall(path.read_text())}
    assert len(used) > 10
    assert used == set(_OURS.findall(page))


def test_label_and_annotation_that_a_page_names_exists() -> None:
    listed = set(_OURS.findall((ROOT / "docs/reference/labels.md").read_text()))
    named = {(page.name, name) for page in PAGES for name in _OURS.findall(page.read_text())}
    assert {(page, name) for page, name in named if name not in listed} == set()


def test_each_event_is_listed() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    reasons = set(_event_reasons([ast.parse(path.read_text()) for path in _SOURCES]))
    assert {"<Kind>NodesAvoided", "StatusConflict", "ShortGracePeriod"} <= reasons
    listed = {*re.findall(r"`([\w<>]+)/?`", page)}
    listed |= {name.replace("TrainingJob", "<Kind>") for name in listed}
    assert sorted(reasons - listed) == []


def test_each_alert_has_a_remedy() -> None:
    rules = (ROOT / "manifests/components/monitoring/prometheusrule.yaml").read_text()
    page = (ROOT / "docs/operate/troubleshooting.md").read_text()
    alerts = re.findall(r"^ *- alert: (\w+)$", rules, re.MULTILINE)
    assert sorted(alerts) == sorted(re.findall(r"^\| `(Dlctl\w+)` \|", page, re.MULTILINE))


def _event_reasons(modules: Sequence[ast.Module]) -> Iterator[str]:
    """Yield the reasons of events that the modules write as literals or constants."""
    constants = {
        node.target.id: node.value
        for module in modules
        for node in module.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for call in (node for module in modules for node in ast.walk(module)):
        if not isinstance(call, ast.Call):
            continue
        called = _name(call.func)
        place = {"EventNote": 1, "SpecWarning": 0, "reason": 0}.get(called)
        if place is None or len(call.args) <= place:
            continue
        value = constants.get(_name(call.args[place]), call.args[place])
        if isinstance(value, ast.Constant):
            yield f"<Kind>{value.value!s}" if called == "reason" else str(value.value)


def _name(node: ast.expr) -> str:
    """Return the last part of a name with dots; empty for another expression."""
    return str(getattr(node, "attr", getattr(node, "id", "")))

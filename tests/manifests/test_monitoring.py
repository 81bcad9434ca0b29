import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.exposition import generate_latest

from dlctl.metrics import Metrics
from tests.manifests.rendered import FOLDER

MONITORING: Final = FOLDER / "components" / "monitoring"
NAME: Final = re.compile(
    r"\b(?:controller_runtime|workqueue|rest_client|leader_election|reflector|informer|dlctl|process)"
    r"_[a-z_]+\b(?!\")"
)
# The names of Go controllers, and of dashboards for them.
UPSTREAM: Final = re.compile(
    r"rest_client_.*|reflector_.*|workqueue_.*|leader_election_.*|controller_runtime_.*"
)


def families() -> Iterator[Metric]:
    yield from Metrics().registry.collect()


def series() -> set[str]:
    """Return the sample names of our metrics."""
    ends = {
        "counter": ("_total",),
        "histogram": ("_bucket", "_sum", "_count"),
        "gauge": ("",),
    }
    return {family.name + end for family in families() for end in ends[family.type]}


def expressions(text: str) -> Iterator[str]:
    for line in re.findall(r"\"expr\": \"(.*)\"", text):
        yield str(json.loads(f'"{line}"'))


def alerts() -> list[dict[str, str]]:
    rule = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())
    return [alert for group in rule["spec"]["groups"] for alert in group["rules"]]


def promtool(*arguments: str, sent: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not there")
    return subprocess.run([program, *arguments], input=sent, check=False, capture_output=True)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The alerts as a rule file of Prometheus, beside their tests."""
    spec = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())["spec"]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(spec))
    shutil.copy(Path(__file__).parent / "alerts.yaml", tmp_path)
    return path


def test_dashboard_uses_existing_metrics() -> None:
    found = [*expressions((MONITORING / "dashboard.json").read_text())]
    assert len(found) > 15
    assert {name for text in found for name in NAME.findall(text)} - series() == set()


def test_alerts_use_existing_metrics() -> None:
    assert {name for a in alerts() for name in NAME.findall(a["expr"])} - series() == set()


def test_every_expression_excludes_other_programs() -> None:
    shown = expressions((MONITORING / "dashboard.json").read_text())
    for text in [*shown, *(alert["expr"] for alert in alerts())]:
        selectors = re.findall(r"[a-z]_[a-z_]+\{[^}]*\}", text)
        assert selectors, text
        assert all('job="dlctl"' in selector for selector in selectors), text


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_alert_rules_are_valid(rules: Path) -> None:
    done = promtool("check", "rules", str(rules))
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_only_when_expected(rules: Path) -> None:
    done = promtool("test", "rules", str(rules.with_name("alerts.yaml")))
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_every_alert_is_tested() -> None:
    tests = yaml.safe_load((Path(__file__).parent / "alerts.yaml").read_text())["tests"]
    tested = {case["alertname"] for test in tests for case in test["alert_rule_test"]}
    assert tested == {alert["alert"] for alert in alerts()}


def test_metric_names_follow_prometheus_conventions() -> None:
    metrics = Metrics()
    for metric in vars(metrics).values():
        # Without a sample there is nothing to check.
        if names := getattr(metric, "_labelnames", ()):
            metric.labels(*names)
    done = promtool("check", "metrics", sent=generate_latest(metrics.registry))
    complaints = [line for line in done.stderr.decode().splitlines() if line]
    assert [line for line in complaints if not UPSTREAM.match(line)] == []

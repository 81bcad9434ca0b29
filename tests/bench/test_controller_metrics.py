"""Figures from the text of /metrics."""

from bench.cluster.controller_metrics import Metrics
from bench.cluster.scenarios.restart import has_reconciled

_TEXT = """\
# TYPE workqueue_depth gauge
workqueue_depth{name="a"} 2.0
workqueue_depth{name="b"} 3.0
"""


def test_total_is_over_all_labels() -> None:
    metrics = Metrics.parse(_TEXT)
    assert metrics.total("workqueue_depth") == 5.0
    assert metrics.highest("workqueue_depth") == 3.0
    assert metrics.total("unknown") == metrics.highest("unknown") == 0.0


def _metrics(reconciles: float, depth: float = 0, active: float = 0) -> Metrics:
    return Metrics(
        [
            ("controller_runtime_reconcile_total", reconciles),
            ("workqueue_depth", depth),
            ("controller_runtime_active_workers", active),
        ]
    )


def test_all_jobs_have_been_reconciled_when_nothing_is_left_to_do() -> None:
    assert has_reconciled(_metrics(10), jobs=10)
    assert not has_reconciled(_metrics(9), jobs=10)
    assert not has_reconciled(_metrics(12, depth=1), jobs=10)
    assert not has_reconciled(_metrics(12, active=1), jobs=10)
